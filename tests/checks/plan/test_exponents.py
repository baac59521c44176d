"""A number without a point is a string in YAML 1.1, whose advice is to write the point."""

import pytest

from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal
from plan_findings import check


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("1e-8", "write 1.0e-8: 1e-8 is a string in YAML"),
        ("3E5", "write 3.0e+5: 3E5 is a string in YAML"),
        ("much", "bind a number to it"),
    ],
)
def test_a_string_that_is_bound_to_a_number(text: str, fix: str) -> None:
    step = Step("train", "x ${{inputs.lr}}", inputs=(Input("lr", "number", GraphInput("lr")),))
    plan = Plan("p", Graph((step,), (Input("lr", "string", Literal(text)),)))
    (problem,) = check(plan)
    assert problem.fix == fix
