"""Bindings as the SDK writes them."""

import pytest

from allranks.plan.ports import GraphInput, Literal, NodeOutput, Text, Value
from allranks.plan.reader.context import pipeline_output, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", Literal("")),
        ("plain", Literal("plain")),
        ("${{parent.inputs.lr}}", GraphInput("lr")),
        ("${{ parent.inputs.group.lr }}", GraphInput("group.lr")),
        ("${{parent.jobs.a.outputs.model}}", NodeOutput("a", "model")),
        ("x-${{parent.inputs.lr}}", Text(("x-", GraphInput("lr")))),
        ("${{parent.jobs.a.outputs.b}}/c", Text((NodeOutput("a", "b"), "/c"))),
        ("${{parent.inputs.a}}${{parent.inputs.b}}", Text((GraphInput("a"), GraphInput("b")))),
        ("${{parent.outputs.x}}", Literal("${{parent.outputs.x}}")),
        ("${{inputs.x}}", Literal("${{inputs.x}}")),
    ],
)
def test_value_of(text: str, value: Value) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "name"), [("${{parent.outputs.best}}", "best"), ("${{parent.inputs.x}}", None), ("best", None)]
)
def test_pipeline_output(text: str, name: str | None) -> None:
    assert pipeline_output(text) == name
