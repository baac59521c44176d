"""What is submitted comes back: the plan of a job is the plan of the REST body that the real client sends for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake.library import Library

from allranks.catalog import sdk
from allranks.local import digest
from allranks.local.plan import Input, Plan, Step
from allranks.local.plan import Path as DataPath
from allranks.local.reader import dsl_file, read_plan
from allranks.local.reader.rest import read_rest

ROOT = Path(__file__).resolve().parents[2]


def comparable(plan: Plan) -> Plan:
    """A plan without what the wire does not carry.

    - where it was read: the source, the place of each step, the folder of a snapshot (its digest counts);
    - names that the SDK makes up when it submits: the job's and the experiment's;
    - what is declared of the pipeline's own inputs beyond a value: ranges, choices, whether optional; and the order;
    - the folder into which data was uploaded, of which the content counts.
    """
    return replace(
        plan,
        name="",
        source="",
        experiment="",
        display_name="",
        steps=tuple(map(_step, plan.steps)),
        inputs=tuple(sorted((_bare(port) for port in plan.inputs), key=lambda port: port.name)),
        outputs=tuple(sorted(plan.outputs, key=lambda output: output.name)),
    )


def _step(step: Step) -> Step:
    code = step.code and replace(step.code, folder="")
    return replace(step, code=code, location=None, inputs=tuple(map(_port, step.inputs)))


def _bare(port: Input) -> Input:
    return replace(_port(port), minimum=None, maximum=None, enum=(), optional=False)


def _port(port: Input) -> Input:
    if isinstance(port.value, DataPath) and Path(port.value.path).exists():
        return replace(port, value=DataPath(digest.of_path(Path(port.value.path))))
    return port


def submitted(azure: Any, path: Path, function: str | None = None) -> dict[str, Any]:
    """The body that the real client sends for the job in a file."""
    from allranks.local import reader

    azure.executes = False
    client = azure.client(show_progress=False)
    with sdk.session(), dsl_file.importable(path):
        job = reader._open(path, function).build({})
        name = client.jobs.create_or_update(job).name
    return {"name": name, "properties": azure.jobs[name].properties}


def returned(azure: Any, body: dict[str, Any], folder: Path) -> Plan:
    return read_rest(body, Library(azure, folder / "files"), folder / "rest")


@pytest.mark.parametrize("path", sorted((ROOT / "pipelines").glob("*.py")), ids=lambda path: path.stem)
def test_the_plan_of_a_pipeline_is_that_of_its_rest_body(azure, path, tmp_path, monkeypatch) -> None:
    plan = comparable(read_plan(str(path), {}, tmp_path / "dsl"))
    back = comparable(returned(azure, submitted(azure, path), tmp_path))
    assert back.steps == plan.steps
    assert back == plan
