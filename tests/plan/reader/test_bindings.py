"""Bindings as the SDK writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
REFERENCES = st.builds(GraphInput, NAMES) | st.builds(NodeOutput, NAMES, NAMES)
TEXTS = st.text(min_size=1).filter(lambda text: "$" not in text and "{" not in text and "}" not in text)


def written(part: str | GraphInput | NodeOutput) -> str:
    if isinstance(part, GraphInput):
        return f"${{{{parent.inputs.{part.name}}}}}"
    if isinstance(part, NodeOutput):
        return f"${{{{parent.jobs.{part.node}.outputs.{part.name}}}}}"
    return part


@given(TEXTS, REFERENCES, TEXTS, REFERENCES)
def test_what_is_written_is_read_back(
    before: str, first: GraphInput | NodeOutput, between: str, second: GraphInput | NodeOutput
) -> None:
    parts = (before, first, between, second)
    assert value_of("".join(map(written, parts))) == Text(parts)


@given(st.text())
def test_any_text_is_a_value(text: str) -> None:
    value = value_of(text)
    if isinstance(value, Literal):
        assert value.value == text
