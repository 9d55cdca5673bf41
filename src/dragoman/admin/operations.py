"""What an operator can change of tenants. Each change is checked before the first write, and leaves a row of the audit.

Methods that add or remove tell whether that changed anything: doing it twice is no error.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from dragoman.admin.overview import Overview, nearest
from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.tenants import Book, Declared, Kind, Token
from dragoman.identity.tokens import PREFIX, hash_token, new_token
from dragoman.model.allowance import LARGEST, LIMITS
from dragoman.model.errors import EntryConflict, EntryNotFound, FieldViolation, InvalidParams
from dragoman.model.ids import new_id
from dragoman.model.principal import FEATURES, NAME_PATTERN, RESERVED, SCOPES, is_name

LONGEST_NOTE = 200
LONGEST_LIFE = 10 * 366 * 86_400_000
"""Milliseconds until a token that expires at all must do so."""


class Actor(Struct, frozen=True, kw_only=True):
    """Who administers, as the audit names them: a principal with its token, or a user of the machine."""

    principal: str
    tenant: str = ""
    credential: str = ""
    address: str = ""

    def entry(self, action: str, target: str = "", detail: str = "") -> AuditEntry:
        """Return what to note of an act of theirs."""
        return AuditEntry(
            action=action,
            target=target,
            tenant=self.tenant,
            principal=self.principal,
            credential=self.credential,
            address=self.address,
            detail=detail,
        )


class Administration:
    """Changes one book, on behalf of somebody."""

    def __init__(self, book: Book, declared: Declared, actor: Actor) -> None:
        """Administer an open book; `declared` is what the configuration names and nothing here can change."""
        self._book = book
        self._declared = declared
        self._actor = actor
        self._seen: Overview | None = None

    @property
    def _view(self) -> Overview:
        if self._seen is None:
            self._seen = Overview(self._book.read(tokens=False), self._declared)
        return self._seen

    def create_tenant(self, name: str, features: Sequence[str] = (), *, adopt: bool = False) -> None:
        """Make a tenant; with `adopt` also where the store holds tasks of an earlier one of this name.

        Raises:
            InvalidParams: the name or a feature is none.
            EntryConflict: it is there already, or an earlier one left tasks, which its principals would see.
        """
        _check_name("name", name, "a tenant")
        for index, feature in enumerate(features):
            _check_feature(f"features[{index}]", feature)
        if name in self._view.kept.tenants:
            raise EntryConflict(f"The tenant {name} is there already")
        if name in self._view.declared.features:
            raise EntryConflict(f"The tenant {name} is in the configuration; it is to be used as it is")
        if not adopt and self._book.has_tasks(name):
            raise _left(f"a tenant {name}", "principals of the same names")
        self._book.add_tenant(name)
        for feature in features:
            self._book.add_feature(name, feature)
        self._note("tenant.create", f"tenants/{name}", detail=" ".join(features))

    def remove_tenant(self, name: str) -> bool:
        """Remove a tenant with its principals, tokens and grants; return whether tasks of it are left in the store.

        Raises:
            EntryNotFound: there is none of this name.
            EntryConflict: it is in the configuration.
        """
        self._view.require_tenant(name)
        if name not in self._view.kept.tenants:
            raise EntryConflict(f"The tenant {name} is in the configuration; take [tenants.{name}] out there")
        self._book.remove_tenant(name)
        self._note("tenant.remove", f"tenants/{name}")
        return self._book.has_tasks(name)

    def add_feature(self, tenant: str, feature: str) -> bool:
        """Give a tenant a feature.

        Raises:
            InvalidParams, EntryNotFound.
        """
        self._view.require_tenant(tenant)
        _check_feature("feature", feature)
        return self._book.add_feature(tenant, feature) and self._note(
            "feature.add", f"tenants/{tenant}/features/{feature}"
        )

    def remove_feature(self, tenant: str, feature: str) -> bool:
        """Take a feature from a tenant.

        Raises:
            InvalidParams, EntryNotFound.
            EntryConflict: the configuration gives it.
        """
        self._view.require_tenant(tenant)
        _check_feature("feature", feature)
        if feature in self._view.declared.features.get(tenant, ()):
            raise EntryConflict(
                f"The configuration gives {tenant} {feature}; take it out of tenants.{tenant}.features"
            )
        return self._book.remove_feature(tenant, feature) and self._note(
            "feature.remove", f"tenants/{tenant}/features/{feature}"
        )

    def set_limit(self, tenant: str, name: str, most: int) -> bool:
        """Bound what a tenant or each of its principals may use, under one of the names of `LIMITS`.

        Raises:
            InvalidParams: there is no such limit, or the number is none.
            EntryNotFound: there is no such tenant.
            EntryConflict: the configuration sets it.
        """
        self._check_limit(tenant, name)
        if not 1 <= most <= LARGEST:
            raise InvalidParams.of("most", f"must be 1 to {LARGEST}")
        return self._book.set_limit(tenant, name, most) and self._note(
            "limit.set", f"tenants/{tenant}/limits/{name}", detail=str(most)
        )

    def remove_limit(self, tenant: str, name: str) -> bool:
        """Have what the configuration says of all tenants bound this one again.

        Raises:
            InvalidParams: there is no such limit.
            EntryNotFound: there is no such tenant.
            EntryConflict: the configuration sets it.
        """
        self._check_limit(tenant, name)
        return self._book.remove_limit(tenant, name) and self._note(
            "limit.remove", f"tenants/{tenant}/limits/{name}"
        )

    def _check_limit(self, tenant: str, name: str) -> None:
        self._view.require_tenant(tenant)
        if name not in LIMITS:
            near = nearest(name, LIMITS)
            hint = f"did you mean {near}? " if near else ""
            raise InvalidParams.of("limit", f"{name[:128]!r} is none; {hint}there are {', '.join(LIMITS)}")
        if name in self._view.declared.limits.get(tenant, ()):
            raise EntryConflict(
                f"The configuration sets {name} of {tenant}; change it there, in tenants.{tenant}.limits"
            )

    def add_principal(self, tenant: str, name: str, *, adopt: bool = False) -> bool:
        """Add a principal; with `adopt` also where the store holds tasks of one of this name.

        Raises:
            InvalidParams, EntryNotFound.
            EntryConflict: an earlier one left tasks, which this one would see.
        """
        self._view.require_tenant(tenant)
        _check_name("name", name, "a principal")
        if name in self._view.principal_names(tenant):
            return False
        if not adopt and self._book.has_tasks(tenant, name):
            raise _left(f"a principal {name} of {tenant}", "the new one")
        return self._book.add_principal(tenant, name) and self._note(
            "principal.add", f"tenants/{tenant}/principals/{name}"
        )

    def remove_principal(self, tenant: str, name: str) -> bool:
        """Remove a principal with its tokens and grants; return whether tasks of it are left in the store.

        Raises:
            EntryNotFound: there is none of this name.
            EntryConflict: it is in the configuration.
        """
        self._view.require_principal(tenant, name)
        if (tenant, name) not in self._view.kept.principals:
            raise EntryConflict(
                f"{name} is in the configuration; take [tenants.{tenant}.principals.{name}] out there"
            )
        self._book.remove_principal(tenant, name)
        self._note("principal.remove", f"tenants/{tenant}/principals/{name}")
        return self._book.has_tasks(tenant, name)

    def add_resource(self, tenant: str, kind: Kind, name: str) -> bool:
        """Add a workspace or a source.

        Raises:
            InvalidParams, EntryNotFound.
        """
        self._view.require_tenant(tenant)
        if re.fullmatch(NAME_PATTERN, name) is None:
            raise InvalidParams.of("name", f"{name[:128]!r} is no name for a {kind}; {_NAMES}")
        if name in self._view.resource_names(tenant, kind):
            return False
        return self._book.add_resource(tenant, kind, name) and self._note(
            f"{kind}.add", _resource(tenant, kind, name)
        )

    def remove_resource(self, tenant: str, kind: Kind, name: str) -> None:
        """Remove a workspace or a source, from everybody who was granted it too.

        Raises:
            EntryNotFound: there is none of this name.
            EntryConflict: it is in the configuration.
        """
        self._view.require_resource(tenant, kind, name)
        if not self._view.keeps_resource(tenant, kind, name):
            raise EntryConflict(f"The {kind} {name} is in the configuration; take it out there")
        self._book.remove_resource(tenant, kind, name)
        self._note(f"{kind}.remove", _resource(tenant, kind, name))

    def grant(self, tenant: str, kind: Kind, name: str, principal: str) -> bool:
        """Grant a workspace or a source to a principal.

        Raises:
            EntryNotFound: the tenant, the principal or what is to be granted is not there.
        """
        self._view.require_resource(tenant, kind, name)
        self._view.require_principal(tenant, principal)
        return self._book.grant(tenant, kind, name, principal) and self._note(
            f"{kind}.grant", f"{_resource(tenant, kind, name)}/grants/{principal}"
        )

    def revoke(self, tenant: str, kind: Kind, name: str, principal: str) -> bool:
        """Take a workspace or a source from a principal.

        Raises:
            EntryNotFound: the tenant, the principal or what is to be taken is not there.
            EntryConflict: the configuration grants it.
        """
        self._view.require_resource(tenant, kind, name)
        self._view.require_principal(tenant, principal)
        if (kind, name) in self._view.declared.grants.get((tenant, principal), ()):
            raise EntryConflict(
                f"The configuration grants it; take it out of tenants.{tenant}.principals.{principal}.{kind}s"
            )
        return self._book.revoke(tenant, kind, name, principal) and self._note(
            f"{kind}.revoke", f"{_resource(tenant, kind, name)}/grants/{principal}"
        )

    def create_token(
        self,
        tenant: str,
        principal: str,
        scopes: Sequence[str],
        *,
        lifetime: int | None = None,
        note: str = "",
    ) -> tuple[Token, str]:
        """Make a token and return it with its text, which nobody can read again; `lifetime` is in milliseconds.

        Raises:
            InvalidParams: a scope is unknown, or the lifetime or the note is too long.
            EntryNotFound: the tenant or the principal is not there.
        """
        self._view.require_principal(tenant, principal)
        _check_token(scopes, lifetime, note)
        text, now = new_token(), self._book.now
        token = Token(
            id=new_id(),
            tenant=tenant,
            principal=principal,
            scopes=tuple(scopes),
            note=note,
            created_at=now,
            expires_at=None if lifetime is None else now + lifetime,
        )
        self._book.add_token(token, hash_token(text))
        self._note("token.create", _token(token), detail=" ".join(scopes))
        return token, text

    def revoke_token(self, token_id: str) -> bool:
        """Make a token good for nothing from now on.

        Raises:
            InvalidParams: this is a token, not the id of one.
            EntryNotFound: there is none of this id.
            EntryConflict: it is in the configuration.
        """
        if token_id.startswith(PREFIX):
            raise InvalidParams.of("id", "is a token itself; name the id that `dragoman token list` shows")
        token = self._book.find_token(token_id)
        if token is None and token_id.startswith("tenants."):
            raise EntryConflict(
                "This token is in the configuration; take it out there and restart the server"
            )
        if token is None:
            raise EntryNotFound("token with the id", token_id)
        return self._book.revoke_token(token_id) and self._note("token.revoke", _token(token))

    def _note(self, action: str, target: str, detail: str = "") -> bool:
        # Something has changed: what comes next has to look again.
        self._seen = None
        self._book.note(self._actor.entry(action, target, detail))
        return True


def _resource(tenant: str, kind: Kind, name: str) -> str:
    return f"tenants/{tenant}/{kind}s/{name}"


def _token(token: Token) -> str:
    return f"tenants/{token.tenant}/principals/{token.principal}/tokens/{token.id}"


def _left(what: str, who: str) -> EntryConflict:
    return EntryConflict(
        f"The store holds tasks of {what} that was there before, and {who} would see them. Take another name, or "
        "adopt them (adopt, --adopt)"
    )


_NAMES = "write lower-case letters, digits, . _ @ and -, at most 128 of them, and a letter or digit first"


def _check_name(field: str, name: str, what: str) -> None:
    if not is_name(name):
        raise InvalidParams.of(
            field, f"{name[:128]!r} is no name for {what}; {_NAMES}, and neither {' nor '.join(RESERVED)}"
        )


def _check_feature(field: str, feature: str) -> None:
    if feature not in FEATURES:
        raise InvalidParams.of(field, f"{feature[:128]!r} is no feature; there is {', '.join(FEATURES)}")


def _check_token(scopes: Sequence[str], lifetime: int | None, note: str) -> None:
    wrong = []
    if not scopes:
        wrong.append(FieldViolation("scopes", f"must name at least one of {', '.join(SCOPES)}"))
    for index, scope in enumerate(scopes):
        if scope not in SCOPES:
            near = nearest(scope, SCOPES)
            hint = f"did you mean {near}? " if near else ""
            wrong.append(
                FieldViolation(
                    f"scopes[{index}]", f"{scope[:128]!r} is no scope; {hint}there are {', '.join(SCOPES)}"
                )
            )
    if len(set(scopes)) < len(scopes):
        wrong.append(FieldViolation("scopes", "must not name one twice"))
    if lifetime is not None and not 0 < lifetime <= LONGEST_LIFE:
        wrong.append(FieldViolation("expires", "must lie ahead, and not further than ten years"))
    if len(note) > LONGEST_NOTE or not note.isprintable():
        wrong.append(FieldViolation("note", f"must be one line of {LONGEST_NOTE} characters at most"))
    if wrong:
        raise InvalidParams(wrong)
