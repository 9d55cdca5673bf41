"""`dragoman tenant`: tenants, their principals, and what these are granted, also beside a running server."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.administering import change, read
from dragoman.cli.output import print_table
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, JsonOption, make_sure

app = typer.Typer(
    help="Tenants: who may call, and what they are granted. A running server follows within 5 seconds.",
    no_args_is_help=True,
)

TenantArgument = Annotated[str, typer.Argument(help="The tenant's name.")]
PrincipalArgument = Annotated[str, typer.Argument(help="The principal's name.")]
AdoptOption = Annotated[
    bool, typer.Option("--adopt", help="Also if the store holds tasks of an earlier one of this name.")
]


@app.command("create")
def create(
    tenant: TenantArgument,
    features: Annotated[
        list[str] | None, typer.Option("--feature", help="A feature to give it; may be repeated.")
    ] = None,
    adopt: AdoptOption = False,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Make a tenant.

    With the first one, callers of the server have to show a token.
    """
    change(data, config, lambda desk: desk.create_tenant(tenant, features or [], adopt=adopt), create=True)
    print(f"tenant {tenant} created")


@app.command("list")
def list_tenants(
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tenants of the store and of the configuration."""
    from dragoman.admin import Overview

    found = read(data, config, lambda book, declared: Overview(book.read(tokens=False), declared).tenants())
    if as_json:
        _print_json(found)
    else:
        rows = [
            {
                "tenant": one.name,
                "features": ", ".join(one.features),
                "principals": str(one.principals),
                "origin": one.origin,
            }
            for one in found
        ]
        print_table(rows, empty="no tenants")


@app.command("show")
def show(
    tenant: TenantArgument,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a tenant: its principals, workspaces and sources, and who is granted what."""
    from dragoman.admin import Overview
    from dragoman.gateway.tenants import Kind

    def look(book: Any, declared: Any) -> Any:
        view = Overview(book.read(), declared)
        kinds = [view.resources(tenant, kind) for kind in (Kind.WORKSPACE, Kind.SOURCE)]
        return view.tenant(tenant), view.principals(tenant), *kinds

    found, principals, workspaces, sources = read(data, config, look)
    if as_json:
        import msgspec

        whole = {
            **msgspec.to_builtins(found),
            "principals": principals,
            "workspaces": workspaces,
            "sources": sources,
        }
        _print_json(whole)
        return
    print(f"{found.name} (in the {found.origin}); features: {', '.join(found.features) or 'none'}")
    if found.limits:
        print(f"limits: {_spelled(found.limits)}")
    print()
    rows = [
        {
            "principal": one.name,
            "workspaces": ", ".join(one.workspaces),
            "sources": ", ".join(one.sources),
            "tokens": str(one.tokens),
            "origin": one.origin,
        }
        for one in principals
    ]
    print_table(rows, empty="no principals")
    for word, resources in (("workspace", workspaces), ("source", sources)):
        if resources:
            print()
            print_table(
                [
                    {word: one.name, "granted to": ", ".join(one.granted), "origin": one.origin}
                    for one in resources
                ]
            )


@app.command("remove")
def remove(
    tenant: TenantArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Remove a tenant with its principals, tokens and grants; what they have open ends. Its tasks stay."""
    if not yes:
        question = f"Remove the tenant {tenant}, all its principals and their tokens?"
        make_sure(question, unasked=f"{question} Say --yes if that is right", declined="nothing was done")
    left = change(data, config, lambda desk: desk.remove_tenant(tenant))
    print(f"tenant {tenant} removed")
    if left:
        typer.echo(f"dragoman: tasks of {tenant} are left in the store; nobody can reach them", err=True)


feature = typer.Typer(help="What a tenant may do beyond the open surfaces.", no_args_is_help=True)
app.add_typer(feature, name="feature")
FeatureArgument = Annotated[str, typer.Argument(help="The feature: agent_api lets in to hosted agents.")]


@feature.command("add")
def add_feature(
    tenant: TenantArgument,
    name: FeatureArgument,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Give a tenant a feature."""
    done = change(data, config, lambda desk: desk.add_feature(tenant, name))
    print(f"{tenant} has {name}{'' if done else ' already'}")


@feature.command("remove")
def remove_feature(
    tenant: TenantArgument,
    name: FeatureArgument,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Take a feature from a tenant."""
    done = change(data, config, lambda desk: desk.remove_feature(tenant, name))
    print(f"{tenant} has {name} no more" if done else f"{tenant} did not have {name}")


limit = typer.Typer(
    help="How much a tenant may use; what it has no limit of its own for is as in [limits].",
    no_args_is_help=True,
)
app.add_typer(limit, name="limit")
LimitArgument = Annotated[
    str,
    typer.Argument(
        metavar="name",
        help="rate (requests a minute), running (unfinished tasks) or stored (all tasks), each with .tenant "
        "(together) or .principal (each of them): rate.principal.",
    ),
]


@limit.command("set")
def set_limit(
    tenant: TenantArgument,
    name: LimitArgument,
    most: Annotated[int, typer.Argument(help="The most that there may be.")],
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Bound what a tenant, or each of its principals, may use."""
    done = change(data, config, lambda desk: desk.set_limit(tenant, name, most))
    print(f"{name} of {tenant} is {most}{'' if done else ' already'}")


@limit.command("remove")
def remove_limit(
    tenant: TenantArgument,
    name: LimitArgument,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Have the limit of every tenant in the configuration hold for this one again, if there is one."""
    done = change(data, config, lambda desk: desk.remove_limit(tenant, name))
    print(f"{tenant} has no limit {name} of its own{' any more' if done else ''}")


principal = typer.Typer(help="Who calls in a tenant's name.", no_args_is_help=True)
app.add_typer(principal, name="principal")


@principal.command("add")
def add_principal(
    tenant: TenantArgument,
    name: PrincipalArgument,
    adopt: AdoptOption = False,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Add a principal to a tenant; `dragoman token create` lets it in."""
    done = change(data, config, lambda desk: desk.add_principal(tenant, name, adopt=adopt))
    print(f"{name} is a principal of {tenant}{'' if done else ' already'}")


@principal.command("remove")
def remove_principal(
    tenant: TenantArgument,
    name: PrincipalArgument,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Remove a principal with its tokens and grants; what it has open ends. Its tasks stay."""
    left = change(data, config, lambda desk: desk.remove_principal(tenant, name))
    print(f"{name} is no principal of {tenant} any more")
    if left:
        typer.echo(f"dragoman: tasks of {name} are left in the store; nobody can reach them", err=True)


def _resources(kind: str, help_text: str) -> typer.Typer:
    """Return the commands for one kind of what can be granted."""
    group = typer.Typer(help=help_text, no_args_is_help=True)
    name_argument = Annotated[str, typer.Argument(metavar="name", help=f"The {kind}'s name.")]

    @group.command("add", help=f"Add a {kind} to a tenant.")
    def add(
        tenant: TenantArgument,
        name: name_argument,
        data: DataOption = Path(DATA_FOLDER),
        config: ConfigOption = None,
    ) -> None:
        done = change(data, config, lambda desk: desk.add_resource(tenant, _kind(kind), name))
        print(f"{tenant} has the {kind} {name}{'' if done else ' already'}")

    @group.command("remove", help=f"Remove a {kind}, from everybody who was granted it too.")
    def remove(
        tenant: TenantArgument,
        name: name_argument,
        data: DataOption = Path(DATA_FOLDER),
        config: ConfigOption = None,
    ) -> None:
        change(data, config, lambda desk: desk.remove_resource(tenant, _kind(kind), name))
        print(f"{tenant} has the {kind} {name} no more")

    @group.command("grant", help=f"Grant a {kind} to a principal.")
    def grant(
        tenant: TenantArgument,
        name: name_argument,
        principal: PrincipalArgument,
        data: DataOption = Path(DATA_FOLDER),
        config: ConfigOption = None,
    ) -> None:
        done = change(data, config, lambda desk: desk.grant(tenant, _kind(kind), name, principal))
        print(f"{principal} is granted {name}{'' if done else ' already'}")

    @group.command("revoke", help=f"Take a {kind} from a principal; what it shows in there ends.")
    def revoke(
        tenant: TenantArgument,
        name: name_argument,
        principal: PrincipalArgument,
        data: DataOption = Path(DATA_FOLDER),
        config: ConfigOption = None,
    ) -> None:
        done = change(data, config, lambda desk: desk.revoke(tenant, _kind(kind), name, principal))
        print(f"{principal} is granted {name} no more" if done else f"{principal} was not granted {name}")

    return group


def _kind(word: str) -> Any:
    from dragoman.gateway.tenants import Kind

    return Kind(word)


app.add_typer(
    _resources("workspace", "What a tenant's agents work in, and who may call them there."), name="workspace"
)
app.add_typer(_resources("source", "What results draw on, and who may read those."), name="source")


def _spelled(limits: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {most}" for name, most in limits.items())


def _print_json(value: Sequence[Any] | dict[str, Any]) -> None:
    import msgspec

    print(json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2))
