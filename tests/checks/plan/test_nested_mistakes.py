"""Each mistake in nested pipelines and control flow ends in one message that names the path and the key."""

from dataclasses import replace
from typing import Any

import pytest

from allranks.plan.graph import Condition, DoWhile, Graph, Item, Node, ParallelFor, Pipeline, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output
from allranks.plan.ports import Path as DataPath
from plan_findings import check

TRAIN = Step(
    "train",
    "x ${{inputs.lr}} ${{outputs.again}} ${{outputs.model}}",
    inputs=(Input("lr", "number", GraphInput("lr")),),
    outputs=(Output("again", "boolean"), Output("model", "uri_folder", "rw_mount")),
)


def _nested(*nodes: Node, kind: str = "number") -> Graph:
    """A pipeline with the nodes two levels deep."""
    port = Input("lr", kind)
    inner = Pipeline("inner", Graph(nodes, (port,)), inputs=(replace(port, value=GraphInput("lr")),))
    outer = Pipeline("outer", Graph((inner,), (port,)), inputs=(replace(port, value=GraphInput("lr")),))
    return Graph((outer,), (Input("lr", kind, Literal("x" if kind == "string" else 0.1)),))


def _alone(**changes: Any) -> Step:
    return replace(TRAIN, **{"inputs": (Input("lr", "number", Literal(0.1)),), **changes})


def _do_while(**changes: Any) -> DoWhile:
    return replace(DoWhile("loop", _alone(), "again", limit=3), **changes)


def _items(*values: Any, **more: Any) -> ParallelFor:
    items = tuple(Item(str(number), tuple(value.items())) for number, value in enumerate(values))
    return ParallelFor("loop", _alone(inputs=more.pop("ports", TRAIN.inputs)), items, **more)


HALF = {"lr": Literal(0.5)}
FILE = (Input("lr", "uri_file", mode="ro_mount"),)
MISTAKES = {
    "unknown input": (
        _nested(_alone(inputs=(Input("lr", "number", GraphInput("rate")),))),
        "step outer.inner.train, key inputs.lr",
    ),
    "type": (_nested(TRAIN, kind="string"), "step outer.inner.train, key inputs.lr"),
    "missing": (_nested(_alone(inputs=(Input("lr", "number"),))), "step outer.inner.train, key inputs.lr"),
    "cycle": (_nested(_alone(name="a", after=("b",)), _alone(name="b", after=("a",))), "step outer.inner.a"),
    "condition on a folder": (
        _nested(_alone(), _alone(name="next"), Condition("if", NodeOutput("train", "model"), ("next",))),
        "step outer.inner.if, key condition",
    ),
    "condition on an unknown step": (
        _nested(_alone(name="next"), Condition("if", NodeOutput("nope", "again"), ("next",))),
        "step outer.inner.if, key condition",
    ),
    "unknown step in a block": (
        _nested(_alone(), Condition("if", NodeOutput("train", "again"), ("nope",))),
        "step outer.inner.if, key true_block",
    ),
    "in both blocks": (
        _nested(_alone(), _alone(name="next"), Condition("if", NodeOutput("train", "again"), ("next",), ("next",))),
        "step outer.inner.if",
    ),
    "unknown output of a body": (_nested(_do_while(condition="nope")), "step outer.inner.loop, key condition"),
    "a folder decides": (_nested(_do_while(condition="model")), "step outer.inner.loop, key condition"),
    "unknown output in a mapping": (
        _nested(_do_while(feedback=(("nope", "lr"),))),
        "step outer.inner.loop, key mapping.nope",
    ),
    "unknown input in a mapping": (
        _nested(_do_while(feedback=(("again", "nope"),))),
        "step outer.inner.loop, key mapping.again",
    ),
    "type in a mapping": (
        _nested(_do_while(feedback=(("model", "lr"),))),
        "step outer.inner.loop, key mapping.model",
    ),
    "no iterations": (_nested(_do_while(limit=0)), "step outer.inner.loop, key limits.max_iteration_count"),
    "too many iterations": (_nested(_do_while(limit=2000)), "step outer.inner.loop, key limits.max_iteration_count"),
    "no items": (_nested(_items(ports=())), "step outer.inner.loop, key items"),
    "unequal keys": (
        _nested(_items(HALF, {}, ports=(Input("lr", "number", optional=True),))),
        "step outer.inner.loop, key items",
    ),
    "unknown key": (
        _nested(_items({"rate": Literal(1)}, ports=(Input("lr", "number", Literal(1)),))),
        "step outer.inner.loop, key items.0.rate",
    ),
    "type of an item": (_nested(_items({"lr": Literal("much")})), "step outer.inner.loop, key items.0.lr"),
    "missing file": (
        _nested(_items({"lr": DataPath("/nowhere/file")}, ports=FILE)),
        "step outer.inner.loop, key items.0.lr",
    ),
    "no concurrency": (_nested(_items(HALF, max_concurrency=0)), "step outer.inner.loop, key max_concurrency"),
}


@pytest.mark.parametrize(("graph", "where"), MISTAKES.values(), ids=MISTAKES)
def test_one_message_with_path_and_key(graph: Graph, where: str) -> None:
    # The command of a body that has other inputs is not what is tried here.
    problems = [problem for problem in check(Plan("p", graph)) if not problem.where.endswith("key command")]
    assert [problem.where for problem in problems] == [where]
    assert problems[0].found
    assert problems[0].expected or problems[0].fix


def test_without_a_mistake() -> None:
    assert check(Plan("p", _nested(TRAIN, _do_while(), replace(_items(HALF), name="items")))) == []
