"""A server that dies while a remote agent works: the remote task is found again, and no message is sent twice."""

from pathlib import Path

import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interop.remotes.gateway import Agent, Json, agent_at, artifacts, gateway, state, text_of, words
from tests.interop.remotes.processes import RemoteServer
from tests.interop.test_remotes import new_remote

pytestmark = [pytest.mark.interop, pytest.mark.alone]


def shown(agent: Agent, task_id: str, held: str) -> Json:
    """The task once its artifact shows this text."""
    return until(
        lambda: found if artifacts(found := agent.get(task_id)).get("held") == held else None,
        what=f"the artifact {held!r}",
        seconds=15,
    )


def finished(agent: Agent, task_id: str) -> Json:
    """The task once it has its end."""
    return until(
        lambda: found if state(found := agent.get(task_id)) in ("COMPLETED", "FAILED", "CANCELED") else None,
        what="the end of the task",
        seconds=15,
    )


def goes_on(server: ServerProcess, remote: RemoteServer, task_id: str) -> Json:
    """Start the gateway again, have the remote agent tell the rest, and return the task once it has its end.

    What is told while nobody listens is not lost. What an SDK tells while it is subscribed to may be in its task and
    in its events as well, so it tells the next piece before.
    """
    remote.release()
    server.start()
    agent = agent_at(server, "clerk")
    shown(agent, task_id, "one two ")
    remote.release()
    return finished(agent, task_id)


@pytest.mark.parametrize("options", [("JSONRPC",), ("HTTP+JSON",), ("JSONRPC", "poll")], ids="-".join)
def test_a_task_is_found_again_and_goes_on(tmp_path: Path, options: tuple[str, ...]) -> None:
    with new_remote(*options) as remote, gateway(tmp_path, {"clerk": remote.url}) as server:
        running = agent_at(server, "clerk").send("hold", now=True)
        shown(agent_at(server, "clerk"), running["id"], "one ")
        server.kill()
        ended = goes_on(server, remote, running["id"])
        assert (state(ended), artifacts(ended)) == ("COMPLETED", {"held": "one two three"})
        assert [text_of(one) for one in ended["history"] if one["role"] == "ROLE_AGENT"] == ["begun"]
        assert [one["messageId"] for one in remote.desk()["messages"]] == [f"{running['id']}-1"]


def test_a_task_that_ended_meanwhile_ends_here_too(tmp_path: Path) -> None:
    with new_remote("JSONRPC") as remote, gateway(tmp_path, {"clerk": remote.url}) as server:
        running = agent_at(server, "clerk").send("hold", now=True)
        shown(agent_at(server, "clerk"), running["id"], "one ")
        server.kill()
        remote.release()
        remote.release()
        server.start()
        ended = finished(agent_at(server, "clerk"), running["id"])
        assert (state(ended), artifacts(ended)) == ("COMPLETED", {"held": "one two three"})
        assert len(remote.desk()["messages"]) == 1


def test_a_question_outlives_a_crash_on_either_side_of_it(tmp_path: Path) -> None:
    with new_remote("JSONRPC") as remote, gateway(tmp_path, {"clerk": remote.url}) as server:
        asked = agent_at(server, "clerk").send("a journey")
        server.kill()
        server.start()
        again = agent_at(server, "clerk").send("Rome", taskId=asked["id"])
        assert (state(again), words(again)) == ("INPUT_REQUIRED", "When?")
        server.kill()
        server.start()
        done = agent_at(server, "clerk").send("Monday", taskId=asked["id"])
        assert (state(done), artifacts(done)["answer"]) == ("COMPLETED", "answered: Monday")
        assert [one["messageId"] for one in remote.desk()["messages"]] == [
            f"{asked['id']}-{turn}" for turn in (1, 2, 3)
        ]


def test_an_agent_that_is_not_to_go_on_does_not(tmp_path: Path) -> None:
    with new_remote("JSONRPC") as remote:
        server = gateway(tmp_path, {"clerk": remote.url})
        config = tmp_path / "dragoman.toml"
        config.write_text(
            config.read_text(encoding="utf-8") + '[agents.clerk]\non_lost_worker = "fail"\n', encoding="utf-8"
        )
        with server:
            running = agent_at(server, "clerk").send("hold", now=True)
            shown(agent_at(server, "clerk"), running["id"], "one ")
            server.kill()
            server.start()
            ended = finished(agent_at(server, "clerk"), running["id"])
            assert (state(ended), len(remote.desk()["messages"])) == ("FAILED", 1)


def test_a_stop_in_order_leaves_the_remote_task_alone(tmp_path: Path) -> None:
    with new_remote("JSONRPC") as remote:
        server = gateway(tmp_path, {"clerk": remote.url})
        config = tmp_path / "dragoman.toml"
        config.write_text('[server]\ndrain = "0s"\n' + config.read_text(encoding="utf-8"), encoding="utf-8")
        with server:
            running = agent_at(server, "clerk").send("hold", now=True)
            shown(agent_at(server, "clerk"), running["id"], "one ")
            server.terminate()
            ended = goes_on(server, remote, running["id"])
            assert (state(ended), artifacts(ended)) == ("COMPLETED", {"held": "one two three"})
            assert remote.desk()["cancelled"] == []
