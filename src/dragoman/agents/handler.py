"""From any kind of handler to one way of running it: async or plain, function or generator."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import aclosing, closing
from typing import Any

from dragoman.agents.outcome import as_changes, as_message
from dragoman.agents.run import BlockingRun, Chunks, Run
from dragoman.agents.threads import in_thread
from dragoman.gateway.execute import Execution
from dragoman.model import Message

Handler = Callable[..., Any]
Runner = Callable[[Execution], Awaitable[None]]


def runner(handler: Handler, *, takes_text: bool) -> Runner:
    """Return what runs `handler` for an execution and commits what it gives back.

    With `takes_text` the handler is an ordinary function of the text alone.
    """
    if inspect.isasyncgenfunction(handler):
        return _async_generator(handler, takes_text)
    if inspect.iscoroutinefunction(handler):
        return _coroutine(handler, takes_text)
    if inspect.isgeneratorfunction(handler):
        return _generator(handler, takes_text)
    return _plain(handler, takes_text)


def _async_argument(execution: Execution, takes_text: bool) -> Any:
    run = Run(execution)
    return run.text if takes_text else run


def _blocking_argument(execution: Execution, takes_text: bool) -> Any:
    run = BlockingRun(execution, asyncio.get_running_loop())
    return run.text if takes_text else run


def _coroutine(handler: Handler, takes_text: bool) -> Runner:
    async def run(execution: Execution) -> None:
        await _conclude(execution, await handler(_async_argument(execution, takes_text)))

    return run


def _plain(handler: Handler, takes_text: bool) -> Runner:
    async def run(execution: Execution) -> None:
        result = await in_thread(handler, _blocking_argument(execution, takes_text))
        await _conclude(execution, await result if inspect.isawaitable(result) else result)

    return run


def _async_generator(handler: Handler, takes_text: bool) -> Runner:
    async def run(execution: Execution) -> None:
        chunks = Chunks(execution)
        async with aclosing(handler(_async_argument(execution, takes_text))) as generator:
            async for chunk in generator:
                await chunks.add(chunk)
        await chunks.finish()

    return run


def _generator(handler: Handler, takes_text: bool) -> Runner:
    async def run(execution: Execution) -> None:
        chunks = Chunks(execution)
        loop = asyncio.get_running_loop()
        argument = _blocking_argument(execution, takes_text)

        def iterate() -> None:
            # From its beginning to its end in one thread and one context, as a generator may rely on.
            with closing(handler(argument)) as generator:
                for chunk in generator:
                    asyncio.run_coroutine_threadsafe(chunks.add(chunk), loop).result()

        await in_thread(iterate)
        await chunks.finish()

    return run


async def _conclude(execution: Execution, result: Any) -> None:
    if execution.ended:
        return
    if isinstance(result, Message):
        await execution.reply(result)
    elif execution.replies_with_message and result is not None:
        ref = execution.ref
        await execution.reply(as_message(result, task_id="", context_id=ref.context_id))
    else:
        await execution.act(*as_changes(result, execution.next_artifact_id))
