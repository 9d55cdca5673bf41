"""Push notifications through the official SDKs of A2A 1.0, also where they speak 0.3."""

from collections.abc import Iterator

import pytest

from tests.harness.receiver import Receiver
from tests.harness.server import ServerProcess
from tests.interop.pushing import pushing_server
from tests.interop.sdks import ALL_SDKS, Json, Sdk

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def pushing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose demo agent sends push notifications."""
    with pushing_server(tmp_path_factory.mktemp("pushing")) as running:
        yield running


def shown(config: Json) -> Json:
    """A configuration as an SDK read it, without the members that it fills with nothing."""
    found = {name: value for name, value in config.items() if value}
    authentication = {name: value for name, value in found.get("authentication", {}).items() if value}
    return {**found, **({"authentication": authentication} if authentication else {})}


@pytest.mark.parametrize("sdk", ALL_SDKS, ids=str)
def test_configurations_are_created_read_listed_and_deleted_and_told(
    pushing: ServerProcess, sdk: Sdk
) -> None:
    with Receiver() as receiver:
        seen = sdk.drive(pushing.url, f"push={receiver.url()}")["push"]
        task_id = seen["task"]["id"]
        kept = {"taskId": task_id, "url": receiver.url(), "authentication": {"scheme": "Bearer"}}
        assert shown(seen["created"]) == {"id": "made", **kept}
        assert shown(seen["read"]) == {"id": "made", **kept}
        assert [shown(one) for one in seen["listed"]["configs"]] == [
            {"id": "made", **kept},
            {"id": "sent", **kept},
        ]
        assert seen["read after"]["type"] == "TaskNotFoundError"
        assert [one["id"] for one in seen["listed after"]["configs"]] == ["sent"]
        notified = receiver.wait(6)
        assert [one.sequence for one in notified] == [1, 2, 3, 4, 5, 6]
        for one in notified:
            assert one.headers["authorization"] == "Bearer s3cr3t"
            assert one.headers["x-a2a-notification-token"] == "t0k3n"
        last = notified[-1].json()["statusUpdate"]
        assert (last["taskId"], last["status"]["state"]) == (task_id, "TASK_STATE_COMPLETED")
