"""Effects that must not happen twice: a booking that charges once, whatever becomes of the server meanwhile.

Serve it with `dragoman serve examples/steps.py`.
"""

import asyncio
from pathlib import Path

from dragoman import Agent, Run

LEDGER = Path("ledger.txt")

booking = Agent(id="booking", description="Charges for a seat, then prints the ticket.")
transfer = Agent(id="transfer", description="Moves money; never tried twice.", on_lost_worker="fail")


def charge(key: str) -> dict[str, str]:
    """Stand for a payment service, which knows a charge again by its key."""
    with LEDGER.open("a", encoding="utf-8") as ledger:
        ledger.write(f"charged under {key}\n")
    return {"receipt": f"R-{len(LEDGER.read_text(encoding='utf-8').splitlines())}"}


@booking.handler
async def book(run: Run) -> str:
    """Charge in a step, then take a while."""
    paid = await run.step("charge", lambda: charge(run.id))
    await run.working(f"Printing the ticket, attempt {run.attempt}")
    await asyncio.sleep(2)
    return f"Ticket for {run.text}, receipt {paid['receipt']}"


@transfer.handler
async def move(run: Run) -> str:
    """Do something that nobody can find out about afterwards."""
    await asyncio.sleep(2)
    return "Moved."
