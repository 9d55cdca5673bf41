"""Push notifications through the official SDKs of A2A 0.3, and through those of 1.0 where they speak 0.3."""

from collections.abc import Iterator

import pytest

from tests.harness.receiver import Receiver
from tests.harness.server import ServerProcess
from tests.interop.pushing import pushing_server
from tests.interop.sdks import Sdk
from tests.interop.v0_3.sdks import NEWER_SDKS, PYTHON

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def pushing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose demo agent sends push notifications."""
    with pushing_server(tmp_path_factory.mktemp("pushing")) as running:
        yield running


@pytest.mark.parametrize("sdk", PYTHON, ids=str)
def test_a_configuration_is_set_read_and_told_the_task(pushing: ServerProcess, sdk: Sdk) -> None:
    # This SDK's clients can neither list nor delete.
    with Receiver() as receiver:
        seen = sdk.drive(pushing.url, f"push={receiver.url()}")["push"]
        task_id = seen["asked"]["id"]
        for answer in (seen["set"], seen["read"]):
            assert answer["taskId"] == task_id
            config = answer["pushNotificationConfig"]
            assert (config["id"], config["url"]) == ("hook", receiver.url())
            assert config["authentication"]["schemes"] == ["Bearer"]
            assert not config.get("token") and not config["authentication"].get("credentials")
        assert seen["read other"]["type"] and seen["read other"]["code"] in (-32001, 404)
        assert seen["answered"]["status"]["state"] == "completed"
        notified = receiver.wait(3)
        assert [one.json()["status"]["state"] for one in notified] == ["working", "working", "completed"]
        assert {one.json()["id"] for one in notified} == {task_id}
        assert {one.headers["authorization"] for one in notified} == {"Bearer s3cr3t"}
        assert {one.headers["x-a2a-notification-token"] for one in notified} == {"t0k3n"}


# Over HTTP+JSON the Python SDK raises NotImplementedError for 0.3 where it should list, before it sends anything.
LISTING = [sdk for sdk in NEWER_SDKS if (sdk.environment, sdk.binding) != ("a2a-sdk-1.3.0", "HTTP+JSON@0.3")]


@pytest.mark.parametrize("sdk", LISTING, ids=str)
def test_newer_sdks_create_read_list_and_delete_configurations_of_0_3(
    pushing: ServerProcess, sdk: Sdk
) -> None:
    with Receiver() as receiver:
        seen = sdk.drive(pushing.url, f"push={receiver.url()}")["push"]
        assert (seen["created"]["id"], seen["read"]["id"]) == ("made", "made")
        assert [one["id"] for one in seen["listed"]["configs"]] == ["made", "sent"]
        assert seen["read after"]["type"] == "TaskNotFoundError"
        assert [one["id"] for one in seen["listed after"]["configs"]] == ["sent"]
        states = [one.json()["status"]["state"] for one in receiver.wait(6)]
        assert states == ["submitted", *["working"] * 4, "completed"]
