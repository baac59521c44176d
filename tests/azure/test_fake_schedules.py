"""The fake keeps schedules, by the real client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError


@pytest.fixture
def schedule(azure: Any, tmp_path: Path) -> Any:
    """Makes a schedule with a trigger for a pipeline of one step."""
    from azure.ai.ml import load_job
    from azure.ai.ml.entities import Environment, JobSchedule

    azure.executes = False
    azure.client().environments.create_or_update(Environment(name="cpu", version="1", image="ubuntu:22.04"))
    (tmp_path / "job.yml").write_text(
        """\
type: pipeline
compute: azureml:cpu-cluster
jobs:
  one: {type: command, command: echo hello, environment: "azureml:cpu:1"}
"""
    )
    return lambda trigger: JobSchedule(name="nightly", trigger=trigger, create_job=load_job(tmp_path / "job.yml"))


def test_a_schedule_lives(azure, schedule) -> None:
    from azure.ai.ml.entities import CronTrigger
    from fake import schedules

    client = azure.client(show_progress=False)
    made = client.schedules.begin_create_or_update(
        schedule(CronTrigger(expression="0 3 * * *", time_zone="W. Europe Standard Time"))
    ).result()
    assert made.is_enabled
    assert [found.name for found in client.schedules.list()] == ["nightly"]
    assert client.schedules.get("nightly").trigger.expression == "0 3 * * *"

    assert azure.jobs[schedules.fire(azure, "nightly").name].tags["azureml.scheduleName"] == "nightly"

    client.schedules.begin_disable("nightly").result()
    assert [found.name for found in client.schedules.list()] == []
    client.schedules.begin_enable("nightly").result()
    with pytest.raises(HttpResponseError, match="Disable it before"):
        client.schedules.begin_delete("nightly").result()
    client.schedules.begin_disable("nightly").result()
    client.schedules.begin_delete("nightly").result()
    with pytest.raises(ResourceNotFoundError):
        client.schedules.get("nightly")


def test_a_schedule_that_can_never_fire_is_refused(azure, schedule) -> None:
    from azure.ai.ml.entities import CronTrigger, RecurrencePattern, RecurrenceTrigger

    client = azure.client(show_progress=False)
    for trigger in (
        CronTrigger(expression="garbage"),
        RecurrenceTrigger(frequency="day", interval=-3),
        RecurrenceTrigger(frequency="day", interval=1, schedule=RecurrencePattern(hours=[25], minutes=[0])),
    ):
        with pytest.raises(HttpResponseError, match="invalid"):
            client.schedules.begin_create_or_update(schedule(trigger)).result()
    assert azure.schedules == {}
