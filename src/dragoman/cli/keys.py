"""`dragoman keys`: what cards are signed with. Works on the key file alone, with a server running or without."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.output import print_table
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, JsonOption, load_config, refuse

app = typer.Typer(
    help="The keys that cards are signed with. A running server follows within 5 seconds.",
    no_args_is_help=True,
)

AlgorithmOption = Annotated[
    str, typer.Option("--alg", help="ES256 or EdDSA (Ed25519); signing.alg if left out.")
]


@app.command("create")
def create(
    alg: AlgorithmOption = "", data: DataOption = Path(DATA_FOLDER), config: ConfigOption = None
) -> None:
    """Make a key file with a first key. `dragoman serve` does so itself where signing.key_file is not set."""
    from dragoman.cards.keys import KeysError, new_key

    file, settings = _file(data, config)

    def first(keys: Sequence[Any]) -> Sequence[Any]:
        if keys:
            raise KeysError(f"{file.path} is there already; `dragoman keys rotate` puts a new key into it")
        return (new_key(_algorithm(alg, settings), time.time()),)

    (key,) = _changed(file, first)
    print(f"{file.path}: made, with the {key.algorithm} key {key.kid}")


@app.command("list")
def list_keys(
    data: DataOption = Path(DATA_FOLDER), config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """List the keys, without saying them."""
    from dragoman.cards.keys import KeysError

    file, _ = _file(data, config)
    try:
        keys = file.read()
    except KeysError as error:
        refuse(error, 1)
    rows = [_facts(key, time.time()) for key in keys]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        print_table([{name: value or "-" for name, value in row.items()} for row in rows])


@app.command("rotate")
def rotate(
    alg: AlgorithmOption = "",
    overlap: Annotated[
        str,
        typer.Option("--overlap", help="How long the older keys still sign; signing.overlap if left out."),
    ] = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Make a new key that signs from now on. The older ones sign beside it until the overlap is over."""
    from dragoman.cards.keys import new_key, rotated
    from dragoman.cards.settings import flaw
    from dragoman.protocol.protojson import timestamp_text
    from dragoman.tables import ConfigError, seconds

    file, settings = _file(data, config)
    if not file.is_there:
        refuse(f"{file.path} is not there; make it with `dragoman keys create`", 1)
    try:
        beside = seconds(overlap or settings.signing.overlap, "--overlap")
    except ConfigError as error:
        refuse(error)
    algorithm = alg or settings.signing.alg
    if wrong := flaw(algorithm, beside):
        refuse(f"--{wrong}")
    key = new_key(algorithm, time.time())
    made, *older = _changed(file, lambda keys: rotated(keys, key, time.time(), beside))
    print(f"the {made.algorithm} key {made.kid} signs from now on")
    for one in older:
        print(f"{one.kid} signs beside it until {timestamp_text(one.until * 1000)}")


# The name of a key that was made elsewhere may begin with a hyphen, as an option does.
@app.command("retire", context_settings={"ignore_unknown_options": True})
def retire(
    kid: Annotated[str, typer.Argument(help="The key's name, as `keys list` shows it.")],
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Let go of a key at once, because somebody else may have it. Who keeps a card signed by it alone refuses it."""
    from dragoman.cards.keys import KeysError, live

    file, _ = _file(data, config)

    def without(keys: Sequence[Any]) -> Sequence[Any]:
        left = [key for key in keys if key.kid != kid]
        if len(left) == len(keys):
            raise KeysError(
                f"there is no key {kid} in {file.path}; `dragoman keys list` shows those there are"
            )
        if not live(left, time.time()):
            raise KeysError("it is the only key; make another one first: `dragoman keys rotate`")
        return left

    _changed(file, without)
    print(f"{kid} signs no more")


@app.command("public")
def public(data: DataOption = Path(DATA_FOLDER), config: ConfigOption = None) -> None:
    """Print the public halves as a JWK Set, for whoever pins them."""
    from dragoman.cards.keys import KeysError, jwks, live

    file, _ = _file(data, config)
    try:
        keys = live(file.read(), time.time())
    except KeysError as error:
        refuse(error, 1)
    print(json.dumps(json.loads(jwks(keys)), indent=2))


@app.command("sign")
def sign(
    card: Annotated[Path, typer.Argument(help="A file with a card; - reads standard input.")],
    jku: Annotated[
        str, typer.Option("--jku", help="Where the public keys will be, if that is to be signed too.")
    ] = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Sign a card without a server and print it. It is signed for every version of A2A whose members it has.

    Signatures of other keys stay in it.
    """
    from dragoman.cards.canonical import CanonicalError
    from dragoman.cards.keys import KeysError, live

    file, _ = _file(data, config)
    document, versions = _card(card)
    try:
        keys = live(file.read(), time.time())
        if not keys:
            raise KeysError(f"no key in {file.path} counts any more; make one with `dragoman keys rotate`")
        whole = _signed(document, versions, keys, jku)
    except (KeysError, CanonicalError) as error:
        refuse(error, 1)
    print(json.dumps(whole, ensure_ascii=False, indent=2))


def _signed(card: dict[str, Any], versions: Sequence[str], keys: Sequence[Any], jku: str) -> dict[str, Any]:
    from dragoman.cards.sign import signatures
    from dragoman.cards.verify import header_of

    ours = {key.kid for key in keys}
    others = [one for one in card.get("signatures") or () if header_of(one).get("kid") not in ours]
    made = [one for version in versions for one in signatures(card, version, keys, jku)]
    return {**card, "signatures": [*made, *others]}


def _card(file: Path) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the card in a file and the versions of A2A that it is for, or end the command saying what is wrong."""
    from dragoman.cards.canonical import unsteady
    from dragoman.cards.validate import validate

    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        refuse(f"{file}: {error.strerror}", 1)
    report = validate(text)
    wrong = [
        f"{found.path or 'the card'} {found.problem}, wanted: {found.wanted}" for found in report.findings
    ]
    wrong += unsteady(report.card) if "1.0" in report.generations and not wrong else []
    if wrong:
        refuse("\n  ".join([f"{file} is not signed:", *wrong]), 1)
    return dict(report.card), report.generations


def _file(data: Path, config: Path | None) -> tuple[Any, Any]:
    """Return the key file and the configuration, or end the command."""
    from dragoman.app import signing_keys
    from dragoman.tables import ConfigError

    try:
        settings = load_config(config)
    except ConfigError as error:
        refuse(error)
    return signing_keys(settings, data), settings


def _changed(file: Any, change: Any) -> Any:
    from dragoman.cards.keys import KeysError

    try:
        return file.change(change)
    except KeysError as error:
        refuse(error, 1)


def _algorithm(named: str, settings: Any) -> str:
    from dragoman.cards.settings import ALGORITHMS

    if named and named not in ALGORITHMS:
        refuse(f"--alg: {named} is none of {', '.join(ALGORITHMS)}")
    return named or str(settings.signing.alg)


def _facts(key: Any, now: float) -> dict[str, str | None]:
    from dragoman.protocol.protojson import timestamp_text

    return {
        "kid": key.kid,
        "alg": key.algorithm,
        "state": "signs" if key.is_live(now) else "over",
        "since": timestamp_text(key.since * 1000),
        "until": None if key.until is None else timestamp_text(key.until * 1000),
    }
