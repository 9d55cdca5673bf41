"""A plain `def` handler: it runs in a thread, so it may block. It counts, and stops when it is cancelled.

Serve it with `dragoman serve examples/blocking.py`.
"""

from dragoman import Agent, BlockingRun

counter = Agent(id="counter", description="Counts to the number that it is sent, five a second.")


@counter.handler
def count(run: BlockingRun) -> str:
    """Count, telling how far it has come."""
    last = int(run.text)
    for number in range(1, last + 1):
        run.working(f"{number} of {last}")
        if run.wait_cancelled(0.2):
            return "stopped"
    return f"Counted to {last}."
