"""The fake has the operations and the fields of azure-ai-ml's own REST client, and no others."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml._restclient.arm_ml_service import models
from azure.ai.ml._restclient.arm_ml_service.operations import _operations
from azure.ai.ml._restclient.runhistory import models as run_history
from commands import add_step
from fake import names, routing
from fake.service import FakeAzure

from allranks.sdk import internals
from allranks_client.messages import Answer, Request

ELSEWHERE = {
    ("GET", "locations/{}/mfeoperationsstatus/{}"),  # what a long-running operation gives as its address
    ("GET", "locations/{}/mfeoperationresults/jc:{}:{}"),
    ("POST", "workspaces/{}/schedules/{}/trigger"),  # written by hand in the SDK's ScheduleOperations.trigger
}
SHOWN = {
    "codes/[^/]+/versions/[^/]+": "CodeVersion",
    "components/[^/]+": "ComponentContainer",
    "components/[^/]+/versions/[^/]+": "ComponentVersion",
    "computes/[^/]+": "ComputeResource",
    "data/[^/]+": "DataContainer",
    "data/[^/]+/versions/[^/]+": "DataVersionBase",
    "datastores/[^/]+": "Datastore",
    "environments/[^/]+/versions/[^/]+": "EnvironmentVersion",
    "jobs/[^/]+": "JobBase",
    "models/[^/]+/versions/[^/]+": "ModelVersion",
    "schedules/[^/]+": "Schedule",
    "": "Workspace",
    "runs/[^/]+/details": "RunDetails",
    "runs/[^/]+/children": "PaginatedRunList",
}
"""What the service shows at each path below a workspace, as the SDK's models call it."""


def sdk_operations() -> Iterator[tuple[str, str]]:
    """The method and the path of every request that the SDK's client can make, names left out."""
    for name, build in vars(_operations).items():
        if name.startswith("build_") and name.endswith("_request"):
            wanted = [each for each in inspect.signature(build).parameters.values() if each.default is each.empty]
            request = build(**{each.name: "{}" for each in wanted if each.kind is not each.VAR_KEYWORD})
            path = request.url.partition("?")[0].replace("%7B%7D", "{}")
            yield request.method, path.lower().rpartition("/providers/microsoft.machinelearningservices/")[2]


def fake_operations() -> Iterator[tuple[str, str]]:
    for route in routing.ROUTES:
        if route.host == names.MANAGEMENT:
            path = re.sub(r"\(\?P<\w+>\[\^/\]\+\)|\[\^/\]\+", "{}", route.pattern.pattern).replace("\\", "").lower()
            yield route.method, path.rpartition("/providers/microsoft.machinelearningservices/")[2]


def test_an_operation_is_one_of_the_sdk() -> None:
    assert set(fake_operations()) - set(sdk_operations()) == ELSEWHERE


def strange(model: Any, data: Any, where: str) -> Iterator[str]:
    """The fields of a body that its model lacks."""
    if isinstance(data, dict) and hasattr(model, "_attr_to_rest_field"):
        attributes = {field._rest_name: name for name, field in model._attr_to_rest_field.items()}
        for key, value in data.items():
            if key not in attributes:
                yield f"{where}.{key}"
            else:
                yield from strange(getattr(model, attributes[key]), value, f"{where}.{key}")
    elif isinstance(data, dict) and isinstance(model, dict):
        for key, value in data.items():
            yield from strange(model.get(key), value, f"{where}.{key}")
    elif isinstance(data, list) and isinstance(model, list):
        for inner, value in zip(model, data, strict=True):
            yield from strange(inner, value, where)


def test_an_answer_has_the_fields_of_the_sdk(azure: FakeAzure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, found = set(), []
    answer = azure.answer

    def read(request: Request) -> Answer:
        given = answer(request)
        path = request.path.rpartition(f"/workspaces/{names.WORKSPACE}")[2].lstrip("/")
        kind = next((kind for pattern, kind in SHOWN.items() if re.fullmatch(pattern, path)), None)
        if kind and request.method in ("GET", "PUT"):
            body = json.loads(bytes(given.body))  # type: ignore[arg-type]
            shown.add(kind)
            model = getattr(models if request.host == names.MANAGEMENT else run_history, kind)
            found.extend(strange(model._deserialize(body, []), body, kind))
        return given

    monkeypatch.setattr(azure, "answer", read)
    show_everything(azure, tmp_path)
    assert shown == set(SHOWN.values())
    assert found == []


def show_everything(azure: FakeAzure, folder: Path) -> None:
    from azure.ai.ml import command, dsl
    from azure.ai.ml.entities import CommandComponent, CronTrigger, Data, Environment, JobSchedule, Model

    azure.executes = False
    (folder / "code").mkdir()
    (folder / "code" / "say.py").write_text("print()")
    image = Environment(image="ubuntu:24.04")
    client: Any = azure.client(show_progress=False)
    client.data.create_or_update(Data(name="numbers", version="1", path=str(folder / "code")))
    client.models.create_or_update(Model(name="net", version="1", path=str(folder / "code")))
    say = CommandComponent(
        name="say", version="1", command="python say.py", code=str(folder / "code"), environment=image
    )
    say = client.components.create_or_update(say)
    client.components.archive("say")
    client.data.get("numbers", label="latest")
    client.compute.get("cpu-cluster")
    job = command(command="true", environment=image, compute="cpu-cluster", distribution={"type": "PyTorch"})
    run = client.jobs.create_or_update(job).name
    add_step(azure, run, "first", "Failed", error="out of memory", std_log=b"line")
    assert [step.run_id for step in internals.child_runs(client, run)] == [f"{run}-first"]
    internals.run_details(client, f"{run}-first")

    @dsl.pipeline(compute="cpu-cluster")
    def nightly() -> None:
        say()

    trigger = CronTrigger(expression="0 3 * * *")
    client.schedules.begin_create_or_update(JobSchedule(name="nightly", trigger=trigger, create_job=nightly())).result()
