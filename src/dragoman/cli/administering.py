"""What the commands that administer tenants share: opening the store beside a server, and saying what is wrong."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer

from dragoman.cli.settings import load_config, refuse

T = TypeVar("T")

HERE = "command line"
"""Where an act of an operator at the machine comes from."""


def change(data: Path, config: Path | None, work: Callable[[Any], T], *, create: bool = False) -> T:
    """Have `work` change something through an `Administration`, or end the command saying why not.

    Only with `create` is a store made where there is none.
    """
    from dragoman.admin import Administration
    from dragoman.callers import declared
    from dragoman.storage import administer

    settings, path = _settings(data, config)
    if isinstance(path, Path) and not path.is_file():
        if not create:
            refuse(
                f"there is no store at {path}; name the server's data folder with --data, or make it with "
                "`dragoman serve` or `dragoman tenant create`",
                1,
            )
        typer.echo(f"dragoman: makes the store {path}", err=True)
    return guarded(
        lambda: administer(path, lambda book: work(Administration(book, declared(settings), _actor())))
    )


def done_here(action: str, target: str = "", detail: str = "") -> Any:
    """Return what to note in the audit of an act of whoever runs this."""
    return _actor().entry(action, target, detail)


def read(data: Path, config: Path | None, work: Callable[[Any, Any], T]) -> T:
    """Have `work` look something up in a book and with the names of the configuration; or end the command."""
    from dragoman.callers import declared
    from dragoman.storage import consult

    settings, path = _settings(data, config)
    return guarded(lambda: consult(path, lambda book: work(book, declared(settings))))


def configured(config: Path | None) -> Any:
    """Return the configuration, or end the command."""
    return _settings(Path(), config)[0]


def guarded(work: Callable[[], T]) -> T:
    """Return what `work` does, or end the command: with 2 if it was asked wrongly, with 1 otherwise."""
    from dragoman.model.errors import DragomanError, InvalidParams
    from dragoman.stores.errors import StoreError

    try:
        return work()
    except InvalidParams as error:
        refuse(error.message)
    except DragomanError as error:
        refuse(error.message, 1)
    except StoreError as error:
        refuse(error, 1)


def _settings(data: Path, config: Path | None) -> tuple[Any, Any]:
    from dragoman.storage import place_of
    from dragoman.tables import ConfigError

    try:
        settings = load_config(config)
        return settings, place_of(settings, data)
    except ConfigError as error:
        refuse(error)


def _actor() -> Any:
    from dragoman.admin.operations import Actor

    return Actor(principal=_user(), address=HERE)


def _user() -> str:
    """Return the name of the user who runs this, by the system and not by the environment."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
