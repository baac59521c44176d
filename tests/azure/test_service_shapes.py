"""The fake answers in the forms of the real service, and the SDK and we take them as they are."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from fake.fixtures import fresh
from fake.server import Server
from service_answers import ANSWERS, GUID, differences

from allranks_client.messages import Answer, Request
from allranks_command import write

pytestmark = pytest.mark.xdist_group("shapes of the service")  # one client does it all, once

TRAIN = {
    "type": "command",
    "name": "train",
    "version": "1",
    "description": "trains",
    "$schema": "https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json",
    "inputs": {
        "rate": {"type": "number", "optional": True, "default": 0.5},
        "data": {"type": "uri_folder"},
    },
    "outputs": {"again": {"type": "boolean"}},
    "command": "train ${{inputs.data}} $[[${{inputs.rate}}]]",
    "environment": "azureml:torch:1",
    "resources": {"instance_count": 2, "instance_type": "Standard_D4s_v5"},
    "distribution": {"type": "pytorch", "process_count_per_instance": 4},
}
ECHO = {"type": "command", "command": "echo", "environment": "azureml:torch:1"}
SCORE = {
    "type": "parallel",
    "name": "score",
    "version": "1",
    "inputs": {"data": {"type": "uri_folder", "mode": "eval_mount"}},
    "outputs": {"scores": {"type": "uri_file", "mode": "rw_mount"}},
    "input_data": "${{inputs.data}}",
    "mini_batch_size": "5",
    "mini_batch_error_threshold": 1,
    "resources": {"instance_count": 2},
    "task": {
        "type": "run_function",
        "code": "./scoring",
        "entry_script": "score.py",
        "environment": "azureml:torch:1",
    },
}
COPY = {
    "type": "data_transfer",
    "name": "copy",
    "version": "1",
    "inputs": {"a": {"type": "uri_folder"}},
    "outputs": {"b": {"type": "uri_folder"}},
    "task": "copy_data",
    "data_copy_mode": "fail_if_conflict",
}
INNER = {"type": "pipeline", "name": "inner", "version": "1", "jobs": {"b": {"type": "command", "component": ECHO}}}


@dataclass
class Recorded:
    """answers: of requests, by method and path below the workspace or the provider; the first of each"""

    answers: dict[str, Answer]
    client: Any

    def find(self, request: str) -> Answer:
        return next(answer for asked, answer in self.answers.items() if re.fullmatch(request, asked))


@pytest.fixture(scope="module")
def recorded(azure_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """What the fake has answered to a client that does a bit of everything."""
    from azure.ai.ml import load_component, load_job
    from azure.ai.ml.entities import CronTrigger, Data, Environment, JobSchedule, Model

    folder = tmp_path_factory.mktemp("shapes")
    answers: dict[str, Answer] = {}
    with pytest.MonkeyPatch.context() as patch, fresh(azure_server) as azure:
        patch.setenv("AZURE_ML_DISABLE_ON_DISK_CACHE", "true")
        answer = azure.answer

        def keep(request: Request) -> Answer:
            try:
                given = answer(request)
            except Exception as refusal:
                given = refusal.answer(request.host)  # type: ignore[attr-defined]
                answers.setdefault(_name(request), given)
                raise
            answers.setdefault(_name(request), given)
            return given

        azure.answer = keep  # type: ignore[method-assign]
        client = azure.client(show_progress=False)

        def component(**changes: Any) -> Any:
            return load_component(write(folder, "c.yml", yaml.safe_dump({**TRAIN, **changes})))

        def job(**content: Any) -> Any:
            return load_job(write(folder, "j.yml", yaml.safe_dump({"compute": "cpu-cluster", **content})))

        conda = {"name": "c", "channels": ["conda-forge"]}
        client.environments.create_or_update(
            Environment(name="torch", version="1", image="python:3.12", conda_file=conda)
        )
        client.components.create_or_update(component())
        list(client.components.list())
        write(folder, "scoring/score.py", "")
        for spec in (SCORE, COPY):
            client.components.create_or_update(load_component(write(folder, "c.yml", yaml.safe_dump(spec))))
        client.models.create_or_update(Model(name="net", version="1", path=write(folder, "m", "a")))
        client.data.create_or_update(Data(name="words", version="1", path=write(folder, "w", "a"), type="uri_file"))
        write(folder, "inner.yml", yaml.safe_dump({**INNER, "jobs": {"b": ECHO}}))
        steps = {"a": {**ECHO, "inputs": {"rate": "${{parent.inputs.rate}}"}, "command": "echo ${{inputs.rate}}"}}
        steps["nested"] = {"type": "pipeline", "component": "./inner.yml"}
        client.jobs.create_or_update(job(type="pipeline", name="pipeline", inputs={"rate": 3}, jobs=steps))
        list(client.jobs.list(parent_job_name="pipeline"))
        client.jobs.create_or_update(job(name="command", **ECHO))
        ray = {"distribution": {"type": "ray"}, "resources": {"instance_count": 2}}
        client.jobs.create_or_update(job(name="ray", **ECHO, **ray))
        searched = {"rate": {"type": "uniform", "min_value": 0.1, "max_value": 0.5}}
        objective = {"goal": "maximize", "primary_metric": "accuracy"}
        trial = {"command": "echo ${{search_space.rate}}", "environment": "azureml:torch:1"}
        limits: dict[str, Any] = {"limits": {"max_total_trials": 2}, "sampling_algorithm": "random"}
        client.jobs.create_or_update(
            job(type="sweep", name="sweep", trial=trial, search_space=searched, objective=objective, **limits)
        )
        client.jobs.begin_cancel("command").result()
        daily = JobSchedule(name="daily", trigger=CronTrigger(expression="0 3 * * *"), create_job=job(**ECHO))
        client.schedules.begin_create_or_update(daily).result()
        client.schedules.begin_disable("daily").result()
        client.schedules.begin_delete("daily").result()
        client.compute.get("cpu-cluster")
        lost = {"a": {"type": "command", "component": "azureml:train:9", "inputs": {"data": "${{parent.inputs.d}}"}}}
        refused: list[Callable[[], Any]] = [
            lambda: client.compute.get("missing"),
            lambda: client.components.get("missing", "1"),
            lambda: client.schedules.get("missing"),
            lambda: client.components.create_or_update(component(name="changed", command="other")),
            lambda: client.jobs.create_or_update(
                job(
                    type="pipeline",
                    name="lost",
                    jobs=lost,
                    inputs={"d": {"type": "uri_folder", "path": "azureml://datastores/workspaceblobstore/paths/a"}},
                )
            ),
        ]
        client.components.create_or_update(component(name="changed"))
        answers.pop("PUT components/changed/versions/1")
        for call in refused:
            with pytest.raises((HttpResponseError, ResourceNotFoundError)):
                call()
        yield Recorded(answers, client)


def _name(request: Request) -> str:
    path = re.sub(r".*/workspaces/[^/]+/|.*/Microsoft.MachineLearningServices/", "", request.path)
    return f"{request.method} {path}"


@pytest.mark.parametrize("request_name", ANSWERS)
def test_an_answer(request_name: str, recorded: Recorded) -> None:
    answer, (status, expected) = recorded.find(request_name), ANSWERS[request_name]
    assert answer.status == status
    assert isinstance(answer.body, bytes)
    found = json.loads(answer.body) if answer.body else ""
    if isinstance(expected, dict) and "id" not in expected and isinstance(found, dict) and "id" in found:
        found = {key: found[key] for key in found if key not in ("id", "name", "type")}
    assert list(differences(expected, found)) == []


def test_where_to_look(recorded: Recorded) -> None:
    """201 and 202 tell a place, and none tells how long to wait."""
    for request, answer in recorded.answers.items():
        if answer.status in (201, 202) and "blob" not in request and not request.endswith(("/words", "w")):
            assert "Retry-After" not in answer.headers
    assert (
        recorded.find("PUT jobs/command").headers["Location"].endswith("/jobs/command?api-version=2025-01-01-preview")
    )
    place = recorded.find("POST jobs/command/cancel").headers["Location"]
    assert re.search(r"/locations/eastus/mfeOperationResults/jc:[^/]+:command\?api-version=", place)
    deleted = recorded.find("DELETE schedules/daily").headers
    assert "mfeOperationResults" in deleted["Location"]
    assert "mfeOperationsStatus" in deleted["Azure-AsyncOperation"]


def test_an_anonymous_component_has_another_id(recorded: Recorded) -> None:
    made = [
        (request, json.loads(answer.body))  # type: ignore[arg-type]
        for request, answer in recorded.answers.items()
        if request.startswith("PUT components/azureml_anonymous/")
    ]
    assert made
    for request, body in made:
        asked = request.rpartition("/")[2]
        assert asked != body["name"]
        assert GUID.fullmatch(body["name"])
        assert body["id"].endswith(f"/versions/{body['name']}")
    nested = [body["properties"]["componentSpec"] for _, body in made]
    assert {spec["version"] for spec in nested} == {"1"}  # as it is sent, whatever id the component has
    assert [spec.keys() for spec in nested if spec["type"] == "pipeline"] == [
        {"name", "version", "type", "is_deterministic"}
    ]
