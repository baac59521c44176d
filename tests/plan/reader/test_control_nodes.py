"""Loops and conditions are read into nodes that hold their bodies, the same from Python and from YAML."""

from pathlib import Path
from textwrap import dedent

import pytest

from allranks.plan import codec
from allranks.plan.graph import Condition, DoWhile, Graph, Item, ParallelFor, Pipeline, Plan
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output
from nested_graphs import HEAD, TRAIN, bare, train, with_inputs
from pipeline_files import read, write

CONTROL = """\
@dsl.pipeline()
def looping(start: float = 0.5):
    body = train(lr=start)
    fed_back = {body.outputs.next: body.inputs.lr, body.outputs.model: body.inputs.data}
    loop = do_while(body, fed_back, 7, body.outputs.again)
    after = train(data=body.outputs.model, lr=body.outputs.next)
    return {"model": body.outputs.model}


@dsl.pipeline()
def top(go: bool = True):
    each = train()
    loop = parallel_for(body=each, items=[{"lr": 0.5}, {"lr": 1}], max_concurrency=2)
    nested = looping()
    choice = condition(condition=go, true_block=nested, false_block=[each])
    return {"model": nested.outputs.model}


pipeline = top()
"""

LOOPING_YAML = """\
type: pipeline
display_name: looping
inputs: {start: {type: number, default: 0.5}}
outputs: {model: {type: uri_folder}}
jobs:
  after:
    type: command
    component: ./train.yml
    inputs: {data: "${{parent.jobs.body.outputs.model}}", lr: "${{parent.jobs.body.outputs.next}}"}
  body:
    type: command
    component: ./train.yml
    inputs: {lr: "${{parent.inputs.start}}"}
    outputs: {model: "${{parent.outputs.model}}"}
  loop:
    type: do_while
    body: ${{parent.jobs.body}}
    condition: ${{parent.jobs.body.outputs.again}}
    mapping: {next: lr, model: data}
    limits: {max_iteration_count: 7}
"""
CONTROL_YAML = """\
type: pipeline
inputs: {go: true}
outputs: {model: {type: uri_folder}}
jobs:
  each:
    type: command
    component: ./train.yml
  loop:
    type: parallel_for
    body: ${{parent.jobs.each}}
    items: [{lr: 0.5}, {lr: 1}]
    max_concurrency: 2
  nested:
    type: pipeline
    component: ./looping.yml
    outputs: {model: "${{parent.outputs.model}}"}
  choice:
    type: if_else
    condition: ${{parent.inputs.go}}
    true_block: ${{parent.jobs.nested}}
    false_block: ${{parent.jobs.each}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a component in it."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "train.yml", TRAIN)
    return tmp_path


def control_graph() -> Graph:
    """What the pipeline with loops and a condition is: written out."""
    body = with_inputs(train("body"), lr=GraphInput("start"))
    looping = Graph(
        (
            DoWhile("loop", body, "again", (("next", "lr"), ("model", "data")), 7),
            with_inputs(train("after"), data=NodeOutput("loop", "model"), lr=NodeOutput("loop", "next")),
        ),
        (Input("start", "number", Literal(0.5)),),
        (GraphOutput("model", NodeOutput("loop", "model")),),
    )
    each = with_inputs(train("each"), lr=None)
    loop = ParallelFor(
        "loop",
        each,
        (Item("0", (("lr", Literal(0.5)),)), Item("1", (("lr", Literal(1)),))),
        (Output("model", "mltable", "rw_mount"), Output("again", "string"), Output("next", "string")),
        2,
    )
    nested = Pipeline(
        "nested",
        looping,
        display_name="looping",
        inputs=(Input("start", "number", Literal(0.5)),),
        outputs=(Output("model", "uri_folder", "rw_mount"),),
    )
    choice = Condition("choice", GraphInput("go"), ("nested",), ("loop",))
    return Graph(
        (choice, loop, nested),
        (Input("go", "boolean", Literal(True)),),
        (GraphOutput("model", NodeOutput("nested", "model")),),
    )


def control(folder: Path, language: str) -> Plan:
    """The same pipeline in either language."""
    if language == "DSL":
        return read(write(folder, "control.py", HEAD + CONTROL))
    write(folder, "looping.yml", LOOPING_YAML)
    return read(write(folder, "control.yml", CONTROL_YAML))


@pytest.mark.parametrize("language", ["DSL", "YAML"])
def test_control_nodes_hold_their_bodies(folder: Path, language: str) -> None:
    assert bare(control(folder, language).graph) == control_graph()


def test_an_input_of_a_body_bound_to_the_body_itself_has_no_value_in_the_first_iteration(folder: Path) -> None:
    own = '{lr: "${{parent.inputs.start}}", data: "${{parent.jobs.body.outputs.model}}"}'
    mapped = LOOPING_YAML.replace("{type: number, default: 0.5}", "0.5")
    bound = mapped.replace('{lr: "${{parent.inputs.start}}"}', own).replace(", model: data}", "}")
    assert bound != mapped
    loops = [read(write(folder, "loop.yml", text)).graph.by_name["loop"] for text in (mapped, bound)]
    assert bare(Graph(tuple(loops[:1]))) == bare(Graph(tuple(loops[1:])))


def test_a_plan_survives_json(folder: Path) -> None:
    plan = control(folder, "DSL")
    assert codec.loads(codec.dumps(plan)) == plan


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ('{"a": {"lr": 0.5}, "b": {"lr": 1}}', (Item("a", (("lr", Literal(0.5)),)), Item("b", (("lr", Literal(1)),)))),
        ("'[{\"lr\": 0.5}]'", (Item("0", (("lr", Literal(0.5)),)),)),
        ("items", GraphInput("items")),
        ("first.outputs.next", NodeOutput("first", "next")),
        ('[{"lr": rate}]', (Item("0", (("lr", GraphInput("rate")),)),)),
    ],
)
def test_items_may_be_written_in_many_ways(folder: Path, items: str, expected: object) -> None:
    text = f"""
        @dsl.pipeline()
        def top(items: str = '[{{"lr": 1}}]', rate: float = 2):
            first = train(lr=rate)
            each = train()
            loop = parallel_for(body=each, items={items})

        pipeline = top()
    """
    loop = read(write(folder, "items.py", HEAD + dedent(text))).graph.by_name["loop"]
    assert isinstance(loop, ParallelFor)
    assert loop.items == expected
