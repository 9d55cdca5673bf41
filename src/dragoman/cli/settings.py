"""What every command needs: the configuration, the data folder, and a way to say what is wrong."""

import os
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dragoman.config import Config, read_config
from dragoman.tables import ConfigError

CONFIG_FILE = "dragoman.toml"
DATA_FOLDER = ".dragoman-a2a"

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help=f"The configuration; {CONFIG_FILE} here if there is one."),
]
DataOption = Annotated[Path, typer.Option("--data", help="The folder for the store and keys.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FilesArgument = Annotated[list[Path] | None, typer.Argument(help="Python files that define agents.")]


def load_config(path: Path | None) -> Config:
    """Return the configuration of a file (or of `dragoman.toml` here) and the environment.

    Raises:
        ConfigError: it cannot be read or is wrong.
    """
    file = path or Path(CONFIG_FILE)
    if path is None and not file.is_file():
        return read_config({}, os.environ, "the environment")
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML: {error}") from error
    return read_config(document, os.environ, str(file))


def open_operator(data: Path, config: Path | None) -> Any:
    """Return what an operator works on the store with; ends the command if it cannot be had."""
    from dragoman.storage import operator_of, place_of
    from dragoman.stores.errors import StoreError

    try:
        return operator_of(place_of(load_config(config), data))
    except ConfigError as error:
        refuse(error)
    except StoreError as error:
        refuse(error, 1)


def refuse(message: object, code: int = 2) -> NoReturn:
    """Say what is wrong on standard error and exit."""
    typer.echo(f"dragoman: {message}", err=True)
    raise typer.Exit(code)


def make_sure(question: str, *, unasked: str, declined: str) -> None:
    """Ask on the terminal, and end the command unless the answer is yes.

    Args:
        question: what is asked.
        unasked: what is said where there is no terminal to ask on.
        declined: what is said after any other answer.
    """
    if not sys.stdin.isatty():
        refuse(unasked)
    # Not typer.confirm, which writes to standard output too.
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        refuse(declined, 1)
