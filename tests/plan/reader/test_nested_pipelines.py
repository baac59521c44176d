"""Nested pipelines are read into one recursive graph, the same from Python and from YAML."""

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from allranks.contract.mpi import Mpi
from allranks.errors import InputError
from allranks.plan.graph import Graph, Pipeline
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output, Text
from nested_graphs import HEAD, TRAIN, bare, train, with_inputs
from pipeline_files import read, write

NESTED = """\
@dsl.pipeline(display_name="inner")
def inner(lr: float, instances: int, processes: int = 4, word: str = "x"):
    one = train(lr=lr)
    one.resources = JobResourceConfiguration(instance_count=instances)
    one.distribution = MpiDistribution(process_count_per_instance=processes)
    one.environment_variables = {"WORD": word, "TEXT": "a-${{parent.inputs.word}}"}
    return {"model": one.outputs.model}


@dsl.pipeline(display_name="outer")
def outer(instances: int, lr: float = 0.5):
    two = inner(lr=lr, instances=instances, processes=8)
    return {"model": two.outputs.model}


@dsl.pipeline()
def top(count: int = 3, rate: float = 1):
    first = outer(instances=count, lr=rate)
    last = train(data=first.outputs.model, lr=0.25)
    return {"model": last.outputs.model}


pipeline = top()
"""

INNER_YAML = """\
type: pipeline
display_name: inner
inputs:
  lr: {type: number}
  instances: {type: integer}
  processes: {type: integer, default: 4}
  word: {type: string, default: x}
outputs: {model: {type: uri_folder}}
jobs:
  one:
    type: command
    component: ./train.yml
    inputs: {lr: "${{parent.inputs.lr}}"}
    outputs: {model: "${{parent.outputs.model}}"}
    resources: {instance_count: "${{parent.inputs.instances}}"}
    distribution: {type: mpi, process_count_per_instance: "${{parent.inputs.processes}}"}
    environment_variables: {WORD: "${{parent.inputs.word}}", TEXT: "a-${{parent.inputs.word}}"}
"""
OUTER_YAML = """\
type: pipeline
display_name: outer
inputs:
  instances: {type: integer}
  lr: {type: number, default: 0.5}
outputs: {model: {type: uri_folder}}
jobs:
  two:
    type: pipeline
    component: ./inner.yml
    inputs: {lr: "${{parent.inputs.lr}}", instances: "${{parent.inputs.instances}}", processes: 8}
    outputs: {model: "${{parent.outputs.model}}"}
"""
TOP_YAML = """\
type: pipeline
inputs: {count: 3, rate: 1.0}
outputs: {model: {type: uri_folder}}
jobs:
  first:
    type: pipeline
    component: ./outer.yml
    inputs: {instances: "${{parent.inputs.count}}", lr: "${{parent.inputs.rate}}"}
  last:
    type: command
    component: ./train.yml
    inputs: {data: "${{parent.jobs.first.outputs.model}}", lr: 0.25}
    outputs: {model: "${{parent.outputs.model}}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a component in it."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "train.yml", TRAIN)
    write(tmp_path, "inner.yml", INNER_YAML)
    write(tmp_path, "outer.yml", OUTER_YAML)
    return tmp_path


def nested_graph() -> Graph:
    """What the pipeline of two levels is: written out."""
    model = (Output("model", "uri_folder", "rw_mount"),)
    one = train(
        "one",
        instance_count=3,
        distribution=Mpi(process_count_per_instance=8),
        environment_variables={"WORD": GraphInput("word"), "TEXT": Text(("a-", GraphInput("word")))},
    )
    innermost = Graph(
        (with_inputs(one, lr=GraphInput("lr")),),
        (
            Input("lr", "number"),
            Input("instances", "integer"),
            Input("processes", "integer", Literal(4)),
            Input("word", "string", Literal("x")),
        ),
        (GraphOutput("model", NodeOutput("one", "model")),),
    )
    two = Pipeline(
        "two",
        innermost,
        display_name="inner",
        inputs=(
            Input("lr", "number", GraphInput("lr")),
            Input("instances", "integer", GraphInput("instances")),
            Input("processes", "integer", Literal(8)),
            Input("word", "string", Literal("x")),
        ),
        outputs=model,
    )
    first = Pipeline(
        "first",
        Graph(
            (two,),
            (Input("instances", "integer"), Input("lr", "number", Literal(0.5))),
            (GraphOutput("model", NodeOutput("two", "model")),),
        ),
        display_name="outer",
        inputs=(Input("instances", "integer", GraphInput("count")), Input("lr", "number", GraphInput("rate"))),
        outputs=model,
    )
    last = with_inputs(train("last"), data=NodeOutput("first", "model"), lr=Literal(0.25))
    return Graph(
        (first, last),
        (Input("count", "integer", Literal(3)), Input("rate", "number", Literal(1.0))),
        (GraphOutput("model", NodeOutput("last", "model")),),
    )


def sources(folder: Path) -> dict[str, Path]:
    """The same pipeline in both languages."""
    return {
        "DSL": write(folder, "pipeline.py", HEAD + NESTED),
        "YAML": write(folder, "pipeline.yml", TOP_YAML),
    }


@pytest.mark.parametrize("language", ["DSL", "YAML"])
def test_two_levels_are_two_graphs(folder: Path, language: str) -> None:
    assert bare(read(sources(folder)[language]).graph) == nested_graph()


def test_groups_have_dotted_names_at_every_level(folder: Path) -> None:
    text = """
        from azure.ai.ml.dsl._group_decorator import group

        @group
        class Rates:
            first: float
            second: float = 0.5

        @dsl.pipeline()
        def nested(rates: Rates):
            train(lr=rates.first)
            train(lr=rates.second)

        @dsl.pipeline()
        def top(rates: Rates):
            nested(rates=rates)

        pipeline = top(rates=Rates(first=0.1))
    """
    graph = read(write(folder, "groups.py", HEAD + dedent(text))).graph
    (node,) = graph.nodes
    assert isinstance(node, Pipeline)
    assert graph.inputs == (
        Input("rates.first", "number", Literal(0.1)),
        Input("rates.second", "number", Literal(0.5)),
    )
    assert node.inputs == tuple(replace(port, value=GraphInput(port.name)) for port in graph.inputs)
    assert [port.name for port in node.graph.inputs] == ["rates.first", "rates.second"]
    assert [step.inputs[1].value for step in node.graph.nodes] == [
        GraphInput("rates.first"),
        GraphInput("rates.second"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("count: 3", "count: many", "step first.two.one, key resources.instance_count"),
        (
            '{instances: "${{parent.inputs.count}}", lr',
            "{lr",
            "input instances of first.two, which has no value",
        ),
    ],
)
def test_a_mistake_in_a_nested_step_names_its_path(folder: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(write(folder, "pipeline.yml", TOP_YAML.replace(old, new)))
    assert message in str(caught.value)
