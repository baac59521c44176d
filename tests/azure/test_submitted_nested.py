"""A pipeline with nested pipelines and loops: what a dry run prints, and what a service that runs it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command, command, only_run, project, quick
from fake.service import FakeAzure
from fake.workspaces import DATASTORES

from allranks_command import write

__all__ = ["command", "project", "quick"]

COUNT = """
type: command
name: count
version: "1"
inputs:
  number: {type: integer, default: 0}
outputs:
  next: {type: integer}
  again: {type: boolean}
  folder: {type: uri_folder}
environment: {image: "python:3.12"}
command: >-
  echo counted ${{inputs.number}} && echo -n $((${{inputs.number}} + 1)) > ${{outputs.next}} &&
  if [ ${{inputs.number}} -lt 1 ]; then echo -n True; else echo -n False; fi > ${{outputs.again}} &&
  echo ${{inputs.number}} > ${{outputs.folder}}/number
"""

LOOP = """
type: pipeline
name: counting
inputs:
  start: {type: integer}
outputs:
  folder: {type: uri_folder}
jobs:
  count:
    type: command
    component: ./count.yaml
    inputs: {number: "${{parent.inputs.start}}"}
    outputs: {folder: "${{parent.outputs.folder}}"}
  until:
    type: do_while
    body: ${{parent.jobs.count}}
    condition: again
    mapping: {next: number}
    limits: {max_iteration_count: 5}
"""

PIPELINE = """
type: pipeline
display_name: Nested
compute: azureml:cpu-cluster
inputs: {start: 0}
outputs: {folder: {type: uri_folder}}
jobs:
  nested:
    type: pipeline
    component: ./counting.yaml
    inputs: {start: "${{parent.inputs.start}}"}
    outputs: {folder: "${{parent.outputs.folder}}"}
  each:
    type: command
    component: ./count.yaml
  all:
    type: parallel_for
    body: ${{parent.jobs.each}}
    items: '[{"number": 7}, {"number": 8}]'
  skipped:
    type: command
    component: ./count.yaml
  choice:
    type: if_else
    condition: ${{parent.jobs.first.outputs.again}}
    false_block: ${{parent.jobs.skipped}}
  first:
    type: command
    component: ./count.yaml
"""


@pytest.fixture
def nested(project: Path) -> Path:
    """A pipeline with a nested one, which counts in a loop, a loop over two items, and a step that is skipped."""
    write(project, "count.yaml", COUNT)
    write(project, "counting.yaml", LOOP)
    return write(project, "nested.yaml", PIPELINE)


def test_a_nested_pipeline_runs(nested: Path, azure: FakeAzure, command: Command) -> None:
    done = command("submit", nested.name)
    assert done.code == 0, done.out + done.err
    run = only_run(azure)
    states = {azure.jobs[job].display_name: azure.jobs[job].status for job in run.children}
    assert states.pop("skipped") == "Skipped"
    shown = {step["name"]: step["status"] for step in command("show", run.name, "--json").json["steps"]}
    assert shown == {**states, "skipped": "Skipped"}
    assert set(states.values()) == {"Completed"}
    assert {name for name in states if name.endswith((".count", ".each"))} == {
        "nested.until[0].count",
        "nested.until[1].count",
        "all[0].each",
        "all[1].each",
    }
    assert command("logs", run.name, "all[1].each").out == "counted 8\n"
    # The output of the pipeline is that of the last iteration.
    kind, _, place = run.outputs["folder"]
    container = azure.blobs.container(DATASTORES["workspaceblobstore"])
    assert (kind, container[f"{place}number"].read()) == ("uri_folder", b"1\n")
