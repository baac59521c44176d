"""Nested pipelines and control nodes come back: two levels, every control node, settings bound through both levels."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from round_trip import azure, check_round_trip

from allranks_command import write

__all__ = ["azure"]

pytestmark = pytest.mark.xdist_group("round trip")

TRAIN = """\
name: train
version: "1.2"
type: command
inputs:
  data: {type: uri_folder, optional: true}
  table: {type: mltable, optional: true}
  lr: {type: number, default: 0.1, min: 0, max: 1}
  epochs: {type: integer, default: 1}
  fast: {type: boolean, default: true}
  text: {type: string, optional: true}
outputs:
  model: {type: uri_folder}
  score: {type: number}
code: ./src
environment: azureml:cpu:1
resources: {instance_count: 1}
command: >-
  echo $[[${{inputs.data}}]] $[[${{inputs.table}}]] ${{inputs.lr}} ${{inputs.epochs}} ${{inputs.fast}}
  $[[${{inputs.text}}]] ${{outputs.model}} ${{outputs.score}}
"""

JUDGE = """\
name: judge
version: "1"
type: command
inputs:
  model: {type: uri_folder}
  score: {type: number}
outputs:
  again: {type: boolean}
  next: {type: number}
environment: azureml:cpu:1
command: echo ${{inputs.model}} ${{inputs.score}} ${{outputs.again}} ${{outputs.next}}
"""

HEAD = """\
from azure.ai.ml import Input, MpiDistribution, Output, PyTorchDistribution, dsl, load_component
from azure.ai.ml.dsl._condition import condition
from azure.ai.ml.dsl._do_while import do_while
from azure.ai.ml.dsl._group_decorator import group
from azure.ai.ml.dsl._parallel_for import parallel_for
from azure.ai.ml.entities import JobResourceConfiguration

train = load_component(source="./train.yml")
judge = load_component(source="./judge.yml")


@group
class Numbers:
    lr: float = 0.5
    epochs: int = 2


@dsl.pipeline(display_name="Inner", description="The second level.")
def inner(
    lr: float,
    size: int,
    numbers: Numbers,
    processes: int = 4,
    data: Input(type="uri_folder", optional=True) = None,
    word: str = "x",
):
    one = train(lr=lr, epochs=numbers.epochs, data=data, text="a-${{parent.inputs.word}}")
    one.resources = JobResourceConfiguration(instance_count=size)
    one.distribution = PyTorchDistribution(process_count_per_instance=processes)
    one.environment_variables = {"WORD": "${{parent.inputs.word}}"}
    return {"model": one.outputs.model, "score": one.outputs.score}


@dsl.pipeline()
def outer(
    size: int,
    numbers: Numbers,
    lr: float = 0.125,
    processes: int = 1,
    data: Input(type="uri_folder", optional=True) = None,
):
    two = inner(lr=lr, size=size, numbers=numbers, processes=processes, data=data, word="1")
    verdict = judge(model=two.outputs.model, score=two.outputs.score)
    return {"model": two.outputs.model, "again": verdict.outputs.again, "next": verdict.outputs.next}

"""

CASES = {
    "types, modes and paths of a nested node": """
        @dsl.pipeline()
        def nested(
            data: Input(type="uri_folder", mode="download", optional=True),
            kind: Input(type="string", enum=["1", "2"]) = "1",
            rate: Input(type="number", min=0, max=1) = 1,
            count: Input(type="integer", min=1) = 2,
            fast: bool = True,
        ):
            one = train(data=data, lr=rate, epochs=count, fast=fast)
            one.environment_variables = {"KIND": "${{parent.inputs.kind}}"}
            one.outputs.model.mode = "upload"
            return {"model": one.outputs.model, "score": one.outputs.score}

        @dsl.pipeline(default_compute="cpu-cluster")
        def top():
            data = Input(type="uri_folder", path="./data")
            one = nested(data=data, rate=1, kind="2", count=3, fast=False)
            two = nested(data=one.outputs.model, rate=one.outputs.score)
            two.inputs.data.mode = "ro_mount"
            two.outputs.model.mode = "upload"
            one.outputs.model = Output(type="uri_folder", path="azureml://datastores/x/paths/a", mode="rw_mount")

        pipeline = top()
    """,
    "do_while": """
        @dsl.pipeline()
        def looping(numbers: Numbers, size: int = 2, lr: float = 0.5):
            first = outer(size=size, numbers=numbers, lr=lr)
            fed_back = {first.outputs.next: first.inputs.lr, first.outputs.model: [first.inputs.data]}
            do_while(first, fed_back, 5, first.outputs.again)
            train(lr=first.outputs.next)
            return {"model": first.outputs.model}

        @dsl.pipeline(default_compute="cpu-cluster")
        def top(numbers: Numbers):
            nested = looping(numbers=numbers)
            step = train(lr=0.25, data=nested.outputs.model)
            do_while(step, {step.outputs.model: step.inputs.data}, 3)
            return {"model": step.outputs.model}

        pipeline = top(numbers=Numbers())
    """,
    "parallel_for": """
        @dsl.pipeline()
        def each(numbers: Numbers, rate: float = 0.5):
            body = outer(size=2, numbers=numbers)
            loop = parallel_for(body=body, items=[{"lr": 0.5, "processes": 2}, {"lr": 1, "processes": 1}])
            train(table=loop.outputs.model)
            return {"model": loop.outputs.model}

        @dsl.pipeline(default_compute="cpu-cluster")
        def top(numbers: Numbers, rate: float = 0.5, items: str = '[{"lr": 1}]'):
            nested = each(numbers=numbers, rate=rate)
            named = train(fast=False)
            loop = parallel_for(body=named, items={"a": {"lr": rate, "text": "x"}, "b": {"lr": 1, "text": "2"}},
                                max_concurrency=1)
            bound = train(epochs=3)
            parallel_for(body=bound, items=items)
            found = train(
                data=Input(type="uri_folder", path="azureml://datastores/elsewhere/paths/data"), text=loop.outputs.score
            )
            elsewhere = Input(type="uri_folder", path="azureml://datastores/elsewhere/paths/more")
            parallel_for(body=found, items=[{"data": elsewhere}])
            return {"model": nested.outputs.model, "models": loop.outputs.model}

        pipeline = top(numbers=Numbers())
    """,
    "if_else": """
        @dsl.pipeline()
        def choose(numbers: Numbers, go: bool):
            first = outer(size=2, numbers=numbers)
            yes, no = train(data=first.outputs.model), train()
            condition(condition=first.outputs.again, true_block=[yes], false_block=[no])
            condition(condition=go, true_block=train())

        @dsl.pipeline(default_compute="cpu-cluster")
        def top(numbers: Numbers, go: bool = True, other: bool = False):
            nested = choose(numbers=numbers, go=other)
            several = [train(), train()]
            condition(condition=go, true_block=several, false_block=nested)
            loop = outer(size=1, numbers=numbers)
            do_while(loop, {loop.outputs.next: loop.inputs.lr}, 2, loop.outputs.again)
            condition(condition=go, false_block=loop)
            condition(condition=True, true_block=train())

        pipeline = top(numbers=Numbers())
    """,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two components, code and data."""
    folder = tmp_path / "project"
    write(folder, "train.yml", TRAIN)
    write(folder, "judge.yml", JUDGE)
    write(folder, "src/main.py", "print('hello')\n")
    write(folder, "data/numbers.csv", "1,2\n")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_a_nested_dsl_pipeline(azure, project, case, monkeypatch) -> None:
    monkeypatch.chdir(project)
    check_round_trip(azure, write(project, "pipeline.py", HEAD + textwrap.dedent(CASES[case])), project)
