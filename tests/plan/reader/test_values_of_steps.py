"""Values that a step or an item of a loop has itself are accepted as those of the pipeline's inputs are."""

from pathlib import Path

import pytest

from allranks.api import jobs
from allranks.plan import codec
from allranks.plan.ports import GraphInput, Literal
from allranks.plan.ports import Path as DataPath
from allranks.plan.reader import read_plan
from pipeline_files import write

COMPONENT = """\
name: step
version: "1"
type: command
environment: azureml:x:1
inputs:
  data: {type: uri_folder, optional: true}
  n: {type: integer, default: 1}
command: echo ${{inputs.n}} $[[${{inputs.data}}]]
"""
PIPELINE = """\
type: pipeline
inputs: {number: 3.0, file: {type: uri_file, path: file.txt}}
settings: {default_compute: azureml:cpu}
jobs:
  a: {type: command, component: step.yml, inputs: VALUES}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "step.yml", COMPONENT)
    write(tmp_path, "file.txt", "text\n")
    return tmp_path


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ("{data: {type: uri_file, path: file.txt}}", []),
        ("{data: '${{parent.inputs.file}}'}", []),
        ("{data: {type: uri_folder, path: HERE/file.txt}}", ["file.txt is a file"]),
        ("{data: {type: mltable, path: file.txt}}", ["file.txt is a file"]),
        ("{n: 3.0}", []),
        ("{n: '${{parent.inputs.number}}'}", []),
        ("{n: 3.5}", ["3.5"]),
    ],
)
def test_a_value_of_a_step(project: Path, values: str, found: list[str]) -> None:
    write(project, "pipeline.yml", PIPELINE.replace("VALUES", values.replace("HERE", str(project))))
    problems = jobs.check("pipeline.yml", folder=project / "workspace").problems
    assert [problem.found for problem in problems] == found


WARNINGS = {
    "a relative path of a file": ("{data: {type: uri_folder, path: ./file.txt}}", "file-for-folder"),
    "a path of a file without a type": ("{data: {path: file.txt}}", "file-for-folder"),
    "a number of the pipeline": ("{n: '${{parent.inputs.part}}'}", "number-for-integer"),
    "a number of another step": ("{n: '${{parent.jobs.b.outputs.score}}'}", "number-for-integer"),
}


@pytest.mark.parametrize(("values", "rule"), WARNINGS.values(), ids=WARNINGS)
def test_what_azure_ai_ml_sends_is_a_warning(project: Path, values: str, rule: str) -> None:
    other = "  b: {type: command, component: other.yml}\n"
    write(project, "other.yml", COMPONENT + "outputs: {score: {type: number}}\n")
    write(project, "pipeline.yml", PIPELINE.replace("VALUES", values).replace("3.0", "3.0, part: 0.5") + other)
    checked = jobs.check("pipeline.yml", folder=project / "workspace")
    assert (checked.problems, [warning.rule for warning in checked.warnings]) == ((), [rule])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("./${{parent.inputs.name}}/a.csv", "data/a.csv"),
        ("azureml://datastores/${{default_datastore}}/paths/b/c.csv", "blob/b/c.csv"),
        ("azureml://datastores/more/paths/${{parent.inputs.name}}", "more/data"),
    ],
)
def test_expressions_in_the_path_of_data_are_replaced(project: Path, path: str, expected: str) -> None:
    for file in ("data/a.csv", "blob/b/c.csv", "more/data"):
        write(project, file, "1\n")
    write(project, "allranks.yaml", "datastores: {blob: blob, more: more}\n")
    values = f"{{data: {{type: uri_file, path: '{path}'}}}}"
    text = PIPELINE.replace("VALUES", values).replace("azureml:cpu", "azureml:cpu, default_datastore: azureml:blob")
    write(project, "pipeline.yml", text.replace("3.0", "3.0, name: data"))
    checked = jobs.check("pipeline.yml", folder=project / "workspace")
    assert checked.found == ()
    assert checked.plan is not None
    assert checked.plan.graph.by_name["a"].inputs[0].value == DataPath(str(project / expected))


def test_an_output_without_a_type_has_that_of_the_value_which_is_bound_to_it(project: Path) -> None:
    write(project, "step.yml", COMPONENT + "outputs: {score: {type: number}}\n")
    outputs = "outputs: {score: {mode: upload}}\n"
    bound = PIPELINE.replace("VALUES}", "{}, outputs: {score: '${{parent.outputs.score}}'}}")
    write(project, "pipeline.yml", outputs + bound)
    checked = jobs.check("pipeline.yml", folder=project / "workspace")
    assert checked.problems == ()
    assert checked.plan is not None
    assert [output.type for output in checked.plan.graph.outputs] == ["number"]


def test_a_pipeline_job_of_a_component_runs_its_nodes(project: Path) -> None:
    """Paths in the component are relative to its own folder."""
    write(project, "inner/step.yml", COMPONENT)
    write(project, "inner/data/file.txt", "text\n")
    inner = "name: inner\nversion: '1'\ntype: pipeline\ninputs: {n: {type: integer, default: 2}}\njobs:\n"
    values = "{n: '${{parent.inputs.n}}', data: {type: uri_folder, path: data}}"
    write(project, "inner/inner.yml", f"{inner}  a: {{type: command, component: step.yml, inputs: {values}}}\n")
    write(project, "job.yml", "type: pipeline\ncomponent: inner/inner.yml\ninputs: {n: 5}\n")
    checked = jobs.check("job.yml", folder=project / "workspace")
    assert checked.problems == ()
    assert checked.plan is not None
    (node,) = checked.plan.graph.nodes
    assert {port.name: port.value for port in node.inputs} == {
        "data": DataPath(str(project / "inner/data")),
        "n": GraphInput("n"),
    }
    assert [port.value for port in checked.plan.graph.inputs] == [Literal(5)]


EXTRA = PIPELINE.replace("VALUES", "{}").replace("settings: {", "settings: {on_init: begin, on_finalize: end, ")
NODES = "".join(f"  {name}: {{type: command, component: step.yml}}\n" for name in ("end", "begin"))


def test_the_first_and_the_last_node_of_a_pipeline(project: Path) -> None:
    write(project, "pipeline.yml", EXTRA + NODES)
    plan = jobs.check("pipeline.yml", folder=project / "workspace").plan
    assert plan is not None
    assert [node.name for node in plan.graph.nodes] == ["begin", "a", "end"]
    assert plan.graph.needs(plan.graph.by_name["end"]) == ("begin", "a")
    assert codec.loads(codec.dumps(plan)) == plan


def test_a_last_node_that_is_connected_to_another_is_refused(project: Path) -> None:
    write(project, "step.yml", COMPONENT + "outputs: {out: {type: uri_folder}}\n")
    connected = NODES.replace("step.yml}", "step.yml, inputs: {data: '${{parent.jobs.a.outputs.out}}'}}", 1)
    write(project, "pipeline.yml", EXTRA + connected)
    (problem,) = jobs.check("pipeline.yml", folder=project / "workspace").problems
    assert problem.where == "key settings.on_finalize (pipeline.yml:3)"
    assert "should not have connection" in problem.found


def test_uris_among_the_items_of_a_loop_are_those_of_allranks_yaml(project: Path) -> None:
    uri = "azureml://datastores/store/paths"
    write(project, "allranks.yaml", "datastores: {store: files}\n")
    items = ", ".join(f"{{data: {{type: uri_file, path: '{uri}/{name}.txt'}}}}" for name in "ab")
    loop = f"  each: {{type: parallel_for, body: '${{{{parent.jobs.a}}}}', items: [{items}]}}\n"
    write(project, "pipeline.yml", PIPELINE.replace("VALUES", "{}") + loop)
    for name in "ab":
        write(project, f"files/{name}.txt", "text\n")
    plan = read_plan("pipeline.yml", {}, project / "snapshots")
    (loop_node,) = plan.graph.nodes
    paths = [DataPath(str(project / f"files/{name}.txt")) for name in "ab"]
    assert [item.values for item in loop_node.items] == [(("data", path),) for path in paths]  # type: ignore[union-attr]
    assert jobs.check("pipeline.yml", folder=project / "workspace").problems == ()
