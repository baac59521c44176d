"""What `allranks.sdk.internals` asks the service for, through the private parts of the real client."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from commands import add_step, quick, write_log
from fake.jobs import Job
from fake.service import FakeAzure

from allranks.sdk import internals, session

__all__ = ["quick"]

pytestmark = pytest.mark.usefixtures("quick")


def test_the_details_of_a_run_have_its_state_and_its_logs(azure: FakeAzure) -> None:
    job = azure.jobs["run"] = Job("run", None, error="out of memory")
    job.move("Running")
    write_log(azure, job, "std_log", b"line")
    job.move("Failed")
    with session.session():
        details = internals.run_details(azure.client(), "run")
    assert (details.status, details.error.error.message) == ("Failed", "out of memory")
    assert details.start_time_utc <= details.end_time_utc
    assert list(details.log_files) == ["user_logs/std_log.txt"]


def test_the_steps_of_a_run_are_those_of_every_page(azure: FakeAzure) -> None:
    """The SDK's own iterator drops what follows the first page where the service gives a token and no link."""
    azure.page_size = 2
    azure.jobs["run"] = Job("run", None)
    names = [add_step(azure, "run", f"step{number}").name for number in range(5)]
    with session.session():
        client = azure.client()
        assert [run.run_id for run in internals.child_runs(client, "run")] == names
        assert [run.run_id for run in internals.child_runs(client, names[0])] == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"status": 401}, "InvalidAuthenticationToken"),
        ({"status": 200, "body": "{}"}, "has none of run history"),
        ({"status": 200, "body": "<html>"}, "has none of run history"),
    ],
    ids=["refused", "none", "a page"],
)
def test_a_refused_list_of_addresses_is_an_error_of_the_service(
    fault: dict[str, Any], message: str, azure: FakeAzure
) -> None:
    """Where the SDK raises a KeyError."""
    azure.jobs["run"] = Job("run", None)
    azure.fail("/discovery", **fault)
    with session.session(), pytest.raises(HttpResponseError, match=message):
        internals.run_details(azure.client(), "run")


def test_a_link_to_the_next_page_has_its_token() -> None:
    link = "https://host/runs/a/children?api-version=1&%24continuationtoken=token%3D2"
    assert internals._continuation({"nextLink": link}) == "token=2"
    assert internals._continuation({"nextLink": None, "continuationToken": "3"}) == "3"
    assert internals._continuation({"value": []}) is None


def test_a_registered_component_is_found_as_it_was_sent(azure: FakeAzure) -> None:
    from azure.ai.ml.entities import CommandComponent, Environment

    made = CommandComponent(name="train", version="3", command="echo", environment=Environment(image="python:3.12"))
    with session.session():
        client = azure.client()
        client.components.create_or_update(made)
        found = internals.component_version(client, "train", "3")
    assert dict(found.properties.component_spec)["version"] == "3"
