"""The `dragoman` command: one module a verb."""

import sys

import typer

from dragoman.cli import (
    agents,
    approvals,
    audit,
    backup,
    card,
    check,
    conformance,
    delegate,
    keys,
    migrate,
    remotes,
    send,
    serve,
    tasks,
    tenant,
    token,
    webhooks,
    worker,
)

app = typer.Typer(
    name="dragoman",
    help="Serve any agent to the A2A (Agent2Agent) network.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.command("check")(check.check)
app.command("agents")(agents.agents)
app.command("send")(send.send)
app.command("card")(card.card)
app.command("backup")(backup.backup)
app.command("delegate")(delegate.delegate)
app.command("conformance")(conformance.conformance)
app.add_typer(audit.app, name="audit")
app.add_typer(keys.app, name="keys")
app.add_typer(migrate.app, name="migrate")
app.add_typer(remotes.app, name="remotes")
app.add_typer(tasks.app, name="tasks")
app.add_typer(approvals.app, name="approvals")
app.add_typer(tenant.app, name="tenant")
app.add_typer(token.app, name="token")
app.add_typer(webhooks.app, name="webhooks")


def _version(wanted: bool) -> None:
    if wanted:
        from dragoman import __version__

        print(f"dragoman {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Serve any agent to the A2A (Agent2Agent) network."""


def main() -> None:
    """Run the command line; exits 0, 1 (it failed) or 2 (it was asked wrongly)."""
    sys.exit(app(prog_name="dragoman"))
