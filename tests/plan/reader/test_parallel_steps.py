"""Parallel nodes as azure-ai-ml has them: of YAML, of the DSL, of a component by itself; what is wrong with them."""

from pathlib import Path

import pytest

from allranks.checks import plan as checks
from allranks.errors import InputError
from allranks.history.records import Status
from allranks.local.engine import resume
from allranks.local.engine import run as run_plan
from allranks.local.options import Options
from allranks.plan import codec
from allranks.plan.graph import Parallel, Plan, Step
from allranks.plan.walk import steps
from allranks.workspace import Workspace
from pipeline_files import read

TASK = """\
task:
  type: run_function
  code: src
  entry_script: score.py
  environment: azureml:x:1
  program_arguments: --label ${{inputs.label}}
  append_row_to: ${{outputs.rows}}
"""
SETTINGS = """\
input_data: ${{inputs.images}}
mini_batch_size: "2"
max_concurrency_per_instance: 2
mini_batch_error_threshold: 0
retry_settings: {max_retries: 0, timeout: 30}
resources: {instance_count: 2}
"""
JOB = (
    "type: pipeline\n"
    "inputs: {data: {type: uri_folder, path: data}}\n"
    "jobs:\n  score:\n    type: parallel\n"
    "    inputs: {images: '${{parent.inputs.data}}', label: abc}\n    outputs: {rows: {type: uri_file}}\n"
    "    environment_variables: {A: b}\n" + "".join(f"    {line}\n" for line in (SETTINGS + TASK).splitlines())
)
COMPONENT = (
    "$schema: https://azuremlschemas.azureedge.net/latest/parallelComponent.schema.json\n"
    "type: parallel\nname: score\nversion: 1\n"
    "inputs: {images: {type: uri_folder}, label: {type: string, default: abc}}\n"
    "outputs: {rows: {type: uri_file}}\n" + SETTINGS + TASK
)
DSL = """\
from azure.ai.ml import Input, Output, dsl
from azure.ai.ml.entities import JobResourceConfiguration
from azure.ai.ml.parallel import RunFunction, parallel_run_function

task = RunFunction(
    code="src", entry_script="score.py", environment="azureml:x:1",
    program_arguments="--label ${{inputs.label}}", append_row_to="${{outputs.rows}}",
)
score = parallel_run_function(
    name="score", inputs={"images": Input(type="uri_folder"), "label": "abc"},
    outputs={"rows": Output(type="uri_file")},
    input_data="${{inputs.images}}", mini_batch_size="2", max_concurrency_per_instance=2, instance_count=2,
    mini_batch_error_threshold=0, retry_settings={"max_retries": 0, "timeout": 30}, task=task,
)

@dsl.pipeline()
def pipeline(data: Input(type="uri_folder")):
    score(images=data).environment_variables = {"A": "b"}

job = pipeline(Input(type="uri_folder", path="data"))
"""
SCRIPT = """\
import os, sys
def run(batch):
    assert os.path.exists("good") or not batch[0].endswith("e")
    print("run", *map(os.path.basename, batch))
    return [sys.argv[2] + os.path.basename(path) for path in batch]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/score.py").write_text(SCRIPT)
    (tmp_path / "data").mkdir()
    for letter in "abcde":
        (tmp_path / "data" / letter).write_text(letter)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan_of(name: str, text: str, **values: str) -> Plan:
    Path(name).write_text(text)
    return read(name, values)


def step_of(plan: Plan) -> Step:
    ((_, step),) = steps(plan.graph)
    return step


def test_yaml_dsl_and_a_component_by_itself_are_the_same_step(here: Path) -> None:
    plan = plan_of("job.yml", JOB)
    step = step_of(plan)
    assert step.parallel == Parallel(
        entry_script="score.py",
        input_data="${{inputs.images}}",
        mini_batch_size=2,
        max_concurrency=2,
        mini_batch_error_threshold=0,
        max_retries=0,
        timeout=30,
        append_row_to="${{outputs.rows}}",
    )
    assert (step.command, step.instance_count) == ("python score.py --label ${{inputs.label}}", 2)
    assert step.environment_variables == {"A": "b"}
    assert codec.loads(codec.dumps(plan)) == plan
    for other in (plan_of("job.py", DSL), plan_of("component.yml", COMPONENT, images="data")):
        found = step_of(other)
        assert (found.parallel, found.command, found.code) == (step.parallel, step.command, step.code)
        assert (found.instance_count, [port.name for port in found.outputs]) == (2, ["rows"])
        assert not checks.findings(other).errors


def _job(old: str, new: str) -> str:
    assert old in JOB
    return JOB.replace(old, new)


WRONG = {
    "concurrency": (_job("instance: 2", "instance: 0"), "max_concurrency_per_instance", "0"),
    "time-out": (_job("timeout: 30", "timeout: 0"), "retry_settings.timeout", "0"),
    "threshold": (_job("threshold: 0", "threshold: -2"), "mini_batch_error_threshold", "-2"),
    "input": (_job("input_data: ${{inputs.images}}", "input_data: ${{inputs.x}}"), "input_data", "there is no input x"),
    "output": (_job("{{outputs.rows}}", "{{outputs.x}}"), "task.append_row_to", "${{outputs.x}} is not an output"),
    "script": (_job("score.py", "x.py"), "task.entry_script", "x.py is not in the code"),
    "no run": (_job("score.py", "other.py"), "task.entry_script", "other.py defines no function run"),
    "argument": (_job("{{inputs.label}}", "{{inputs.x}}"), "command", "${{inputs.x}}: there is no such input"),
}


@pytest.mark.parametrize(("text", "key", "found"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_has_its_key(here: Path, text: str, key: str, found: str) -> None:
    (here / "src/other.py").write_text("def init(): pass\n")
    (problem,) = checks.findings(plan_of("job.yml", text)).errors
    assert f"key {key} " in problem.where
    assert problem.found.startswith(found)


TABLES = {
    "no YAML": ("paths: [", "MLTable"),
    "no paths": ("type: mltable", "it has no list of paths"),
    "unknown": (
        "paths: [{file: x.csv}]\ntransformations: [{x: 1}]",
        "x is not applied by the local engine; it applies read_delimited",
    ),
    "remote": ("paths: [{file: 'https://x.org/a.csv'}]", "is not on this machine"),
    "kind": ("paths: [{url: x}]", "is not a file, a folder or a pattern"),
}


@pytest.mark.parametrize(("text", "found"), TABLES.values(), ids=TABLES)
def test_an_mltable_that_cannot_be_read(here: Path, text: str, found: str) -> None:
    (here / "data/MLTable").write_text(text)
    (problem,) = checks.findings(plan_of("job.yml", JOB)).errors
    assert "key inputs.images" in problem.where
    assert found in problem.found


def test_a_size_that_the_sdk_refuses_is_one_message(here: Path) -> None:
    with pytest.raises(InputError, match="mini_batch_size"):
        plan_of("job.yml", _job('"2"', '"2 files"'))


def test_a_run_on_two_instances_that_fails_and_is_resumed(here: Path, kind: str) -> None:
    workspace, options = Workspace(here / "workspace"), Options(instances=kind, slots=8, track=False)
    plan = plan_of("job.yml", JOB.replace("max_concurrency_per_instance: 2", "max_concurrency_per_instance: 1"))
    record = run_plan(plan, workspace, options)
    assert record.status is Status.FAILED
    assert record.verdict is not None
    assert record.verdict.reason.startswith(
        "1 mini-batches failed, at most 0 may; the last one, mini-batch 2 (e): score.py:3"
    )
    assert record.verdict.rank == 0
    (here / "src/score.py").write_text(SCRIPT)
    for code in (here / "snapshots").glob("*"):
        (code / "good").touch()
    again = resume(record.id, workspace, options)
    assert again.status is Status.COMPLETED
    (rows,) = [Path(output.path) for output in again.step("score").outputs]
    assert rows.read_text().splitlines() == [f"abc{letter}" for letter in "abcde"]
