"""LocalClient answers as MLClient does: both make the same calls, one on a folder, the other on the fake service."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml import Input, Output, command, dsl, load_component
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
from fake.service import FakeAzure
from two_clients import Call, Side, kept, outcome, sides

__all__ = ["quick", "sides"]


def _latest(collection: str, name: str) -> list[Call]:
    return [
        lambda side: getattr(side, collection).get(name, "1"),
        lambda side: getattr(side, collection).get(name=name, version="1"),
        lambda side: getattr(side, collection).get(name, version="2"),
        lambda side: getattr(side, collection).get(name, label="latest"),
        lambda side: getattr(side, collection).get(name),
        lambda side: getattr(side, collection).get(name, version="1", label="latest"),
        lambda side: getattr(side, collection).get(name, label="best"),
        lambda side: getattr(side, collection).get(name, version="99"),
        lambda side: getattr(side, collection).get("nothing", version="1"),
        lambda side: getattr(side, collection).get("nothing", label="latest"),
        lambda side: getattr(side, collection).list(name),
        lambda side: getattr(side, collection).list(name="nothing"),
        lambda side: getattr(side, collection).list(),
        lambda side: getattr(side, collection).archive(name, version="1"),
        lambda side: getattr(side, collection).get(name, version="1"),
        lambda side: getattr(side, collection).list(name),
        lambda side: getattr(side, collection).list(name, list_view_type=ListViewType.ARCHIVED_ONLY),
        lambda side: getattr(side, collection).list(name, list_view_type=ListViewType.ALL),
        lambda side: getattr(side, collection).restore(name, version="1"),
        lambda side: getattr(side, collection).list(name),
        lambda side: getattr(side, collection).archive(name, version="99"),
        lambda side: getattr(side, collection).archive(name),
        lambda side: getattr(side, collection).list(),
        lambda side: getattr(side, collection).list(list_view_type=ListViewType.ARCHIVED_ONLY),
        lambda side: getattr(side, collection).restore(name),
        lambda side: getattr(side, collection).archive("nothing", label="latest"),
        lambda side: getattr(side, collection).archive(name, version="1", label="latest"),
        lambda side: getattr(side, collection).archive(name, label="latest"),
        lambda side: getattr(side, collection).get(name, label="latest"),
        lambda side: getattr(side, collection).list(name),
        lambda side: getattr(side, collection).restore(name, label="latest"),
        lambda side: getattr(side, collection).restore("nothing"),
        lambda side: getattr(side, collection).get(name, "latest"),
    ]


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
        lambda side: side.schedules.trigger("nothing"),
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
        *_latest("data", "words"),
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
        lambda side: side.data.create_or_update(Data(name="a name", version="1", path=side.path("code"))),
        lambda side: side.create_or_update(Data(name="direct", version="1", path=side.path("code"), description="d")),
    ],
    "environments": [
        lambda side: side.environments.create_or_update(Environment(name="torch", version="1", image="python:3.12")),
        lambda side: side.environments.create_or_update(
            Environment(
                name="torch",
                version="2",
                image="python:3.12",
                conda_file={"name": "c", "dependencies": ["pip"]},
                tags={"a": "b"},
            )
        ),
        *_latest("environments", "torch"),
        lambda side: side.environments.create_or_update(Environment(name="torch", version="1", image="python:3.13")),
        lambda side: side.environments.create_or_update(Environment(name="torch", image="python:3.13")).version,
        lambda side: side.environments.create_or_update(Environment(name="torch", image="python:3.13")).version,
        lambda side: side.environments.create_or_update(Environment(name="torch", image="python:3.12")).version,
        lambda side: side.environments.create_or_update(
            Environment(name="built", version="1", build=BuildContext(path=side.path("image")))
        ),
        lambda side: side.environments.create_or_update(Environment(name="torch", version="7")),
    ],
    "components": [
        lambda side: side.components.create_or_update(side.component("1")),
        lambda side: side.components.create_or_update(side.component("2")),
        *_latest("components", "train"),
        lambda side: side.components.create_or_update(side.component("1", option="--rate")),
        lambda side: side.components.create_or_update(side.component("1", display="Trains")),
        lambda side: side.components.create_or_update(side.component("3"), version="4"),
        lambda side: side.components.create_or_update(side.component("null")),
        lambda side: side.components.get("train", label="latest").version,
        lambda side: side.components.validate(side.component("5")),
        lambda side: side.components.create_or_update(load_component(side.path("broken.yaml"))),
    ],
    "models": [
        lambda side: side.models.create_or_update(Model(name="net", version="1", path=side.path("code"))),
        lambda side: side.models.create_or_update(
            Model(name="net", version="2", path=side.path("code"), type="mlflow_model", tags={"a": "b"})
        ),
        *_latest("models", "net"),
        lambda side: side.models.create_or_update(Model(name="net", version="1", path=side.path("other"))),
        lambda side: side.models.create_or_update(Model(name="net", path=side.path("other"))),
        lambda side: side.models.create_or_update(
            Model(name="linked", version="1", path="azureml://jobs/some/outputs/artifacts/paths/model/")
        ),
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


def streamed(side: Side, job: str) -> list[str]:
    """What `jobs.stream` prints, without the logs: it shows none if the job has ended before its first look."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        side.jobs.stream(side.results[job].name)
    first = ("RunId", "Web View", "Execution Summary")
    return [line.partition(":")[0] for line in text.getvalue().splitlines() if line.startswith(first)]


def downloaded(side: Side, job: str, **options: Any) -> list[str]:
    folder = side.folder / f"{job}-{len(options)}"
    side.jobs.download(side.results[job].name, download_path=folder, **options)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _about(job: str) -> list[Call]:
    return [
        lambda side: streamed(side, job),
        lambda side: side.jobs.get(side.results[job].name),
        lambda side: side.jobs.get(side.results[job].name).status,
        lambda side: downloaded(side, job),
        lambda side: downloaded(side, job, output_name="said"),
        lambda side: downloaded(side, job, all=True, output_name=None),
        lambda side: side.jobs.list(parent_job_name=side.results[job].name),
        lambda side: [side.jobs.get(child.name) for child in side.jobs.list(parent_job_name=side.results[job].name)],
        lambda side: side.jobs.begin_cancel(side.results[job].name),
        lambda side: side.jobs.show_services(side.results[job].name),
        lambda side: side.jobs.show_services(side.results[job].name, node_index=0),
        lambda side: side.jobs.update(side.results[job].name, tags={"a": "b"}, display_name="Said"),
        lambda side: side.jobs.update(side.results[job].name),
        lambda side: side.jobs.archive(side.results[job].name),
        lambda side: len(list(side.jobs.list())),
        lambda side: len(list(side.jobs.list(list_view_type=ListViewType.ARCHIVED_ONLY))),
        lambda side: len(list(side.jobs.list(list_view_type=ListViewType.ALL))),
        lambda side: len(list(side.jobs.list(parent_job_name=side.results[job].name))),
        lambda side: side.jobs.restore(side.results[job].name),
        lambda side: len(list(side.jobs.list())),
        lambda side: side.jobs.get(side.results[job].name),
    ]


JOBS: list[Call] = [
    lambda side: side.environments.create_or_update(Environment(name="small", version="1", image="python:3.12")),
    kept("command", lambda side: side.jobs.create_or_update(say("one", compute="cpu-cluster"), experiment_name="e")),
    *_about("command"),
    kept("pipeline", lambda side: side.jobs.create_or_update(saying(compute="cpu-cluster"), tags={"c": "d"})),
    *_about("pipeline"),
    kept(
        "failed",
        lambda side: side.create_or_update(
            command(command="exit 3", environment="azureml:small:1", compute="cpu-cluster")
        ),
    ),
    lambda side: streamed(side, "failed"),
    lambda side: side.jobs.get(side.results["failed"].name),
    lambda side: side.schedules.begin_create_or_update(scheduled(job=side.results["pipeline"].name)).result().name,
    lambda side: kept("triggered", lambda side: side.jobs.get(side.schedules.trigger("nightly").job_name))(side).tags[
        "azureml.scheduleName"
    ],
    lambda side: streamed(side, "triggered"),
    lambda side: downloaded(side, "triggered", output_name="said"),
    lambda side: side.jobs.validate(saying(compute="cpu-cluster")).passed,
    lambda side: side.jobs.validate(saying()).passed,
    lambda side: side.jobs.create_or_update(saying()),
    lambda side: side.jobs.create_or_update("job"),
    lambda side: side.jobs.create_or_update(None),
]


@pytest.mark.parametrize("group", CALLS)
def test_calls(group: str, sides: tuple[Side, Side]) -> None:
    outcomes = [[outcome(call, side) for side in sides] for call in CALLS[group]]
    assert [(number, *pair) for number, pair in enumerate(outcomes) if pair[0] != pair[1]] == []


def test_jobs(sides: tuple[Side, Side], azure: FakeAzure) -> None:
    azure.executes = True
    outcomes = [[outcome(call, side) for side in sides] for call in JOBS]
    assert [(number, *pair) for number, pair in enumerate(outcomes) if pair[0] != pair[1]] == []
