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


INNER_YAML = """
type: pipeline
name: inner
version: "3"
display_name: Inner
inputs:
  lr: {type: number}
  size: {type: integer}
  processes: {type: integer, default: 4}
  numbers.epochs: {type: integer, default: 2}
  data: {type: uri_folder, optional: true}
  word: {type: string, default: "1"}
outputs:
  model: {type: uri_folder}
  score: {type: number}
  again: {type: boolean}
  next: {type: number}
jobs:
  one:
    type: command
    component: ./train.yml
    inputs:
      lr: ${{parent.inputs.lr}}
      epochs: ${{parent.inputs.numbers.epochs}}
      data: ${{parent.inputs.data}}
    outputs: {model: "${{parent.outputs.model}}", score: "${{parent.outputs.score}}"}
    resources: {instance_count: "${{parent.inputs.size}}"}
    distribution: {type: mpi, process_count_per_instance: "${{parent.inputs.processes}}"}
    environment_variables: {WORD: "${{parent.inputs.word}}"}
  verdict:
    type: command
    component: ./judge.yml
    inputs: {model: "${{parent.jobs.one.outputs.model}}", score: "${{parent.jobs.one.outputs.score}}"}
    outputs: {again: "${{parent.outputs.again}}", next: "${{parent.outputs.next}}"}
"""

OUTER_YAML = """
type: pipeline
name: outer
inputs:
  size: {type: integer, default: 2}
  lr: {type: number, default: 0.5}
  go: {type: boolean, default: false}
outputs:
  model: {type: uri_folder}
  models: {type: mltable}
jobs:
  body:
    type: pipeline
    component: ./inner.yml
    inputs: {lr: "${{parent.inputs.lr}}", size: "${{parent.inputs.size}}"}
    outputs: {model: "${{parent.outputs.model}}"}
  loop:
    type: do_while
    body: ${{parent.jobs.body}}
    condition: again
    mapping:
      next: lr
      model: [data]
    limits: {max_iteration_count: 3}
  trial:
    type: pipeline
    component: ./inner.yml
    inputs: {size: 1}
  trials:
    type: parallel_for
    body: ${{parent.jobs.trial}}
    items: '[{"lr": 0.5, "word": "x"}, {"lr": 1, "word": "2"}]'
    max_concurrency: 2
    outputs: {model: {type: mltable}}
  rest:
    type: command
    component: ./train.yml
    inputs: {table: "${{parent.jobs.trials.outputs.model}}"}
  choice:
    type: if_else
    condition: ${{parent.inputs.go}}
    true_block: ${{parent.jobs.rest}}
"""

TOP_YAML = """
type: pipeline
display_name: Top
compute: azureml:cpu-cluster
inputs: {lr: 0.25, data: {type: uri_folder, path: ./data}}
outputs: {model: {type: uri_folder}}
jobs:
  nested:
    type: pipeline
    component: ./outer.yml
    inputs: {lr: "${{parent.inputs.lr}}", size: 3, go: true}
    outputs: {model: "${{parent.outputs.model}}"}
  after:
    type: command
    component: ./train.yml
    inputs: {data: "${{parent.jobs.nested.outputs.model}}"}
  other:
    type: pipeline
    component: ./inner.yml
    inputs: {lr: 1, size: 2, data: "${{parent.inputs.data}}", numbers.epochs: 3, word: "${{parent.inputs.lr}}"}
"""


def test_a_nested_yaml_pipeline(azure, project, monkeypatch) -> None:
    monkeypatch.chdir(project)
    # Of components that differ in no more than their names, the service keeps the first, which is the DSL's.
    write(project, "train.yml", TRAIN + "description: Of YAML.\n")
    write(project, "judge.yml", JUDGE + "description: Of YAML.\n")
    write(project, "inner.yml", INNER_YAML)
    write(project, "outer.yml", OUTER_YAML)
    check_round_trip(azure, write(project, "pipeline.yml", TOP_YAML), project, nameless=True)
