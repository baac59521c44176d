"""The artifacts of a step, which azure-ai-ml lets another step read although no component declares them."""

from pathlib import Path

from allranks.plan.graph import Step
from allranks.plan.ports import NodeOutput, Output
from pipeline_files import read, write
from plan_findings import check


def _component(folder: Path, outputs: str) -> None:
    write(
        folder,
        "write.yml",
        f"""
        name: write
        version: "1"
        type: command
        command: echo report > outputs/report.txt
        environment: azureml:torch:3
        {outputs}
        """,
    )
    write(
        folder,
        "read.yml",
        """
        name: read
        version: "1"
        type: command
        command: cat ${{inputs.run}}/outputs/report.txt
        environment: azureml:torch:3
        inputs: {run: {type: uri_folder}}
        """,
    )


PYTHON = """
from azure.ai.ml import dsl, load_component

write, read = load_component("./write.yml"), load_component("./read.yml")


@dsl.pipeline
def reports():
    first = write()
    read(run="${{parent.jobs.first.outputs.artifacts}}")
"""

YAML = """
type: pipeline
jobs:
  first: {type: command, component: ./write.yml}
  read: {type: command, component: ./read.yml, inputs: {run: "${{parent.jobs.first.outputs.artifacts}}"}}
"""


def test_a_binding_by_text(here: Path) -> None:
    _component(here, "")
    write(here, "pipeline.py", PYTHON)
    plan = read("pipeline.py")
    assert check(plan) == []
    first, second = plan.graph.nodes
    assert isinstance(second, Step)
    assert first.outputs == (Output("artifacts", "uri_folder", "rw_mount", holds_artifacts=True),)
    assert second.inputs[0].value == NodeOutput("first", "artifacts")


def test_a_declared_one_holds_the_artifacts(here: Path) -> None:
    _component(here, "outputs: {artifacts: {type: uri_folder, mode: upload}}")
    write(here, "pipeline.yml", YAML)
    plan = read("pipeline.yml")
    assert check(plan) == []
    assert plan.graph.nodes[0].outputs == (Output("artifacts", "uri_folder", "upload", holds_artifacts=True),)
