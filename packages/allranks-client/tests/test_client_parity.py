"""LocalClient answers as MLClient does: both make the same calls, one on a folder, the other on the fake service."""

from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml import Input, Output, command, dsl
from azure.ai.ml.constants import ListViewType
from azure.ai.ml.entities import (
    BuildContext,
    CronTrigger,
    Data,
    Environment,
    JobSchedule,
    Model,
    RecurrencePattern,
    RecurrenceTrigger,
)
from commands import quick
from two_clients import Call, Side, outcome, sides

__all__ = ["quick", "sides"]


VERSIONS: list[Call] = [
    lambda side: side.data.get("words", "1"),
    lambda side: side.data.get(name="words", version="1"),
    lambda side: side.data.get("words", version="2"),
    lambda side: side.data.get("words", label="latest"),
    lambda side: side.data.get("words"),
    lambda side: side.data.get("words", version="1", label="latest"),
    lambda side: side.data.get("words", label="best"),
    lambda side: side.data.get("words", version="99"),
    lambda side: side.data.get("nothing", version="1"),
    lambda side: side.data.get("nothing", label="latest"),
    lambda side: side.data.list("words"),
    lambda side: side.data.list(name="nothing"),
    lambda side: side.data.list(),
    lambda side: side.data.archive("words", version="1"),
    lambda side: side.data.get("words", version="1"),
    lambda side: side.data.list("words"),
    lambda side: side.data.list("words", list_view_type=ListViewType.ARCHIVED_ONLY),
    lambda side: side.data.list("words", list_view_type=ListViewType.ALL),
    lambda side: side.data.restore("words", version="1"),
    lambda side: side.data.list("words"),
    lambda side: side.data.archive("words", version="99"),
    lambda side: side.data.archive("words"),
    lambda side: side.data.list(),
    lambda side: side.data.list(list_view_type=ListViewType.ARCHIVED_ONLY),
    lambda side: side.data.restore("words"),
    lambda side: side.data.archive("nothing", label="latest"),
    lambda side: side.data.archive("words", version="1", label="latest"),
    lambda side: side.data.archive("words", label="latest"),
    lambda side: side.data.get("words", label="latest"),
    lambda side: side.data.list("words"),
    lambda side: side.data.restore("words", label="latest"),
    lambda side: side.data.restore("nothing"),
    lambda side: side.data.get("words", "latest"),
]
"""What is asked of data with two versions; of other assets the same functions answer."""


def scheduled(name: str = "nightly", trigger: Any = None, job: Any = None, **more: Any) -> JobSchedule:
    pattern = RecurrencePattern(hours=[2], minutes=[30], week_days=["monday"])
    trigger = trigger or RecurrenceTrigger(frequency="week", interval=2, schedule=pattern, time_zone="UTC")
    return JobSchedule(name=name, trigger=trigger, create_job=job or saying(compute="cpu-cluster"), **more)


def view(kind: str) -> Call:
    return lambda side: side.schedules.list(list_view_type=kind)


CALLS: dict[str, list[Call]] = {
    "schedules": [
        lambda side: side.environments.create_or_update(Environment(name="small", version="1", image="python:3.12")),
        lambda side: side.schedules.begin_create_or_update(scheduled(tags={"a": "b"})).result(),
        lambda side: side.schedules.begin_create_or_update(
            scheduled("daily", CronTrigger(expression="0 5 * * *", time_zone="UTC"), description="d", display_name="D")
        ).result(),
        lambda side: side.schedules.get("nightly"),
        lambda side: side.schedules.get(name="daily").trigger.expression,
        lambda side: side.schedules.get("nothing"),
        lambda side: side.schedules.list(),
        lambda side: side.schedules.begin_disable("nightly").result(),
        lambda side: side.schedules.get("nightly").is_enabled,
        lambda side: side.schedules.list(),
        view("DisabledOnly"),
        view("All"),
        lambda side: side.schedules.begin_delete("daily"),
        lambda side: side.schedules.begin_enable("nightly").result(),
        lambda side: side.schedules.begin_enable("nothing"),
        lambda side: side.schedules.begin_disable("nothing"),
        lambda side: side.schedules.begin_create_or_update(scheduled(description="changed")).result(),
        lambda side: side.begin_create_or_update(scheduled(display_name="Again")).result(),
        lambda side: side.schedules.begin_create_or_update(scheduled(job=saying())),
        lambda side: side.schedules.begin_disable("nightly").result(),
        lambda side: side.schedules.begin_delete("nightly").result(),
        lambda side: side.schedules.get("nightly"),
        lambda side: side.schedules.begin_delete("nightly"),
        lambda side: side.schedules.begin_create_or_update(scheduled()).result().is_enabled,
        view("All"),
    ],
    "registry": [
        lambda side: side.registry.environments.create_or_update(
            Environment(name="torch", version="1", image="python:3.12")
        ),
        lambda side: side.registry.environments.create_or_update(
            Environment(name="built", version="1", build=BuildContext(path=side.path("image")))
        ),
        lambda side: side.registry.environments.get("torch", version="1").id,
        lambda side: side.registry.environments.get("torch", version="2"),
        lambda side: side.registry.components.create_or_update(side.component("1")),
        lambda side: side.registry.components.create_or_update(side.component("2")),
        lambda side: side.registry.components.get("train", version="1"),
        lambda side: side.registry.components.get("train", label="latest").version,
        lambda side: side.registry.components.get("nothing", version="1"),
        lambda side: side.registry.components.list("train"),
        lambda side: side.registry.models.create_or_update(Model(name="net", version="1", path=side.path("code"))),
        lambda side: side.registry.models.get("net", version="1").id,
        lambda side: side.registry.models.list("net"),
        lambda side: side.registry.data.create_or_update(Data(name="words", version="1", path=side.path("code"))),
        lambda side: side.registry.data.get("words", version="1").id,
        lambda side: side.registry.data.get("words", version="3"),
        lambda side: side.registry.data.list("words"),
        lambda side: Input(path=side.registry.data.get("words", version="1").id),
    ],
    "data": [
        lambda side: side.data.create_or_update(Data(name="words", version="1", path=side.path("code"))),
        lambda side: side.data.create_or_update(
            Data(name="words", version="2", path=side.path("code/train.py"), type="uri_file")
        ),
        *VERSIONS,
        lambda side: side.data.create_or_update(Data(name="words", version="1", path=side.path("other"))),
        lambda side: side.data.create_or_update(
            Data(name="words", version="2", path=side.path("code/train.py"), type="uri_file", tags={"a": "b"})
        ),
        lambda side: side.data.create_or_update(Data(name="words", path=side.path("other"))),
        lambda side: side.data.create_or_update(Data(name="counted", path=side.path("other"))),
        lambda side: side.data.create_or_update(
            Data(name="remote", version="1", type="uri_file", path="https://host/file.csv")
        ),
        lambda side: side.data.create_or_update(Data(name="missing", version="1", path=side.path("nowhere"))),
        lambda side: side.data.create_or_update(
            Data(name="missing", version="1", type="uri_file", path=side.path("code"))
        ),
        lambda side: side.create_or_update(Data(name="direct", version="1", path=side.path("code"), description="d")),
    ],
    "models": [
        lambda side: side.models.create_or_update(Model(name="net", version="1", path=side.path("code"))),
        lambda side: side.models.create_or_update(Model(name="net", path=side.path("other"))),
        lambda side: side.models.download("net", "1", download_path=side.path("downloaded")),
        lambda side: sorted(path.name for path in Path(side.path("downloaded")).rglob("*")),
    ],
    "machine": [
        lambda side: side.compute.get("cpu-cluster"),
        lambda side: side.workspaces.get().name == side.client.workspace_name,
        lambda side: side.datastores.get("workspaceblobstore"),
        lambda side: side.datastores.get_default(),
        lambda side: side.datastores.get("nothing"),
        lambda side: side.datastores.list(),
        lambda side: side.workspaces.get(side.client.workspace_name),
        lambda side: side.jobs.get("nothing"),
        lambda side: side.jobs.get(1),
        lambda side: side.jobs.stream("nothing"),
        lambda side: side.jobs.download("nothing"),
        lambda side: side.jobs.begin_cancel("nothing"),
        lambda side: side.jobs.archive("nothing"),
        lambda side: side.jobs.list(parent_job_name="nothing"),
        lambda side: side.jobs.show_services("nothing"),
        lambda side: side.jobs.restore("nothing"),
        lambda side: side.jobs.update("nothing", tags={"a": "b"}),
        lambda side: side.jobs.list(),
        lambda side: Input(path=side.data.get("words", version="1").id),
    ],
}


def say(words: str, **more: Any) -> Any:
    text = f"echo {words} > ${{{{outputs.said}}}}/words && mkdir -p outputs && echo {words} > outputs/{words}"
    outputs = {"said": Output(type="uri_folder")}
    return command(command=text, environment="azureml:small:1", outputs=outputs, **more)


def saying(**settings: Any) -> Any:
    @dsl.pipeline(**settings)
    def pipeline():  # type: ignore[no-untyped-def]
        first = say("first")()
        return {"said": first.outputs.said}

    return pipeline()


@pytest.mark.parametrize("group", CALLS)
def test_calls(group: str, sides: tuple[Side, Side]) -> None:
    outcomes = [[outcome(call, side) for side in sides] for call in CALLS[group]]
    assert [(number, *pair) for number, pair in enumerate(outcomes) if pair[0] != pair[1]] == []
