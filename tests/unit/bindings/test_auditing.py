"""Which refusals go into the audit, and what is said of them there."""

import pytest

from dragoman.bindings.auditing import entry_of, refusal_of
from dragoman.bindings.exchange import Exchange, RawRequest
from dragoman.gateway.audit import AuditEntry
from dragoman.model import Principal
from dragoman.model.errors import (
    AgentNotFound,
    ApprovalClosed,
    BodyTooLarge,
    DragomanError,
    EntryConflict,
    Forbidden,
    InternalError,
    InvalidAgentResponse,
    InvalidParams,
    MessageIdConflict,
    QuotaExceeded,
    RateLimited,
    TaskNotCancelable,
    TaskNotFound,
    Unauthenticated,
    Unavailable,
)
from dragoman.protocol.headers import Headers

ALICE = Principal("acme", "alice", credential="t1")
AGENTS = ("demo", "ours")


async def no_body(length: bytes | None, limit: int | None) -> bytes:
    return b""


def exchange(
    path: str = "/agents/demo/rpc", principal: Principal | None = ALICE, operation: str = ""
) -> Exchange:
    request = RawRequest("POST", path, b"", Headers([]), "r1", no_body, "10.0.0.1")
    asked = Exchange(request, None)
    asked.principal, asked.operation = principal, operation
    return asked


def test_an_act_is_noted_with_who_asks_and_from_where() -> None:
    assert entry_of(exchange(operation="CancelTask")) == AuditEntry(
        action="CancelTask", tenant="acme", principal="alice", credential="t1", address="10.0.0.1"
    )
    assert entry_of(exchange(principal=None)) is None


@pytest.mark.parametrize(
    ("error", "principal", "outcome"),
    [
        (Unauthenticated("no", invalid=True), None, "UNAUTHENTICATED"),
        (Unauthenticated("no", invalid=False), None, "UNAUTHENTICATED"),
        (Forbidden("a2a:delegate"), ALICE, "INSUFFICIENT_SCOPE"),
        (RateLimited("wait"), None, "RATE_LIMITED"),
        (AgentNotFound("no"), ALICE, "AGENT_NOT_FOUND"),
    ],
)
@pytest.mark.parametrize("operation", ["", "GetTask", "SendMessage"])
def test_denied_access_is_noted_whatever_was_asked(
    error: DragomanError, principal: Principal | None, outcome: str, operation: str
) -> None:
    found = refusal_of(exchange("/agents/ours/tasks", principal, operation), error, AGENTS)
    assert found is not None
    assert (found.action, found.target) == (operation or "Access", "agents/ours")
    assert (found.outcome, found.address, found.times) == (outcome, "10.0.0.1", 1)
    assert (found.tenant, found.principal, found.credential) == (
        ("acme", "alice", "t1") if principal else ("", "", "")
    )
    assert found.detail == ("a2a:delegate" if isinstance(error, Forbidden) else "")


def test_whose_credential_allows_nothing_here_is_noted_too() -> None:
    found = refusal_of(exchange(principal=None), Forbidden("ai:answer", by=ALICE), AGENTS)
    assert found is not None
    assert (found.principal, found.detail) == ("alice", "ai:answer")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/agents/demo/tasks/x", "agents/demo"),
        ("/v1/a2a/agents/ours/rpc", "agents/ours"),
        ("/agents/nobody%0aknows/rpc", ""),
        ("/agents/", ""),
        ("/v1/a2a/approvals/x", ""),
        ("/somewhere/else", ""),
    ],
)
def test_only_names_of_agents_that_are_there_get_into_the_audit(path: str, target: str) -> None:
    found = refusal_of(exchange(path, None), Unauthenticated("no", invalid=False), AGENTS)
    assert found is not None
    assert found.target == target


@pytest.mark.parametrize(
    "error",
    [
        TaskNotFound("t"),
        TaskNotCancelable("no"),
        MessageIdConflict([]),
        InvalidParams.of("a", "secret text"),
        ApprovalClosed("no"),
        EntryConflict("no"),
        BodyTooLarge("no"),
        QuotaExceeded("no"),
    ],
)
def test_a_change_that_was_not_made_is_noted_and_a_read_is_not(error: DragomanError) -> None:
    for operation in (
        "SendMessage",
        "SendStreamingMessage",
        "CancelTask",
        "DecideApproval",
        "ResumeRun",
        "Administer",
    ):
        found = refusal_of(exchange(operation=operation), error, AGENTS)
        assert found is not None
        assert (found.action, found.outcome, found.detail) == (operation, error.reason, "")
    for operation in ("", "GetTask", "ListTasks", "SubscribeToTask", "GetAgentCard"):
        assert refusal_of(exchange(operation=operation), error, AGENTS) is None
    assert refusal_of(exchange(principal=None, operation="SendMessage"), error, AGENTS) is None


@pytest.mark.parametrize("error", [InvalidAgentResponse("no"), Unavailable("no"), InternalError()])
def test_an_error_that_may_come_after_the_change_is_not_noted(error: DragomanError) -> None:
    assert refusal_of(exchange(operation="SendMessage"), error, AGENTS) is None


def test_an_agent_that_is_not_there_at_all_is_nobodys_secret() -> None:
    asked = exchange("/agents/nowhere/rpc", ALICE, "SendMessage")
    assert refusal_of(asked, AgentNotFound("no"), AGENTS) is None
