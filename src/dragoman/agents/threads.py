"""Plain functions in threads, for handlers that are not async."""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call `function` in a thread and return its result, or raise what it raised.

    A cancellation waits for the thread, which nothing can interrupt: its place is not free before it ends.
    """

    def call() -> tuple[Any, BaseException | None]:
        # What a future cannot carry (StopIteration) or takes for its own (CancelledError) goes as a value.
        try:
            return function(*arguments), None
        except BaseException as error:  # handed over, and raised where the handler is awaited
            return None, error

    context = contextvars.copy_context()
    pending = asyncio.get_running_loop().run_in_executor(None, context.run, call)
    try:
        result, error = await asyncio.shield(pending)
    except asyncio.CancelledError:
        await asyncio.wait([pending])
        raise
    if isinstance(error, StopIteration | StopAsyncIteration):
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error
    if error is not None:
        raise error
    return result
