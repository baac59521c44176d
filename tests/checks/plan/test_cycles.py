"""Steps that wait for each other."""

import pytest

from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, NodeOutput, Output
from plan_findings import check


def ring(*names: str) -> tuple[Step, ...]:
    """Steps of which each needs the one before it, and the first the last."""
    return tuple(
        Step(
            name,
            "x",
            inputs=(Input("i", "uri_folder", NodeOutput(names[place - 1], "o")),),
            outputs=(Output("o", "uri_folder"),),
        )
        for place, name in enumerate(names)
    )


@pytest.mark.parametrize(
    ("steps", "cycles"),
    [
        (ring("a"), ["a -> a"]),
        (ring("a", "b"), ["a -> b -> a"]),
        (ring("a", "b", "c"), ["a -> b -> c -> a"]),
        ((*ring("a", "b"), *ring("c", "d")), ["a -> b -> a", "c -> d -> c"]),
        ((Step("x", "x", after=("y",)), Step("y", "x", after=("x",))), ["x -> y -> x"]),
    ],
)
def test_cycles(steps: tuple[Step, ...], cycles: list[str]) -> None:
    assert [problem.found for problem in check(Plan("p", Graph(steps)))] == [
        f"steps wait for each other: {cycle}" for cycle in cycles
    ]


def test_a_long_chain_is_no_cycle() -> None:
    steps = [Step("s0", "x")] + [Step(f"s{n}", "x", after=(f"s{n - 1}",)) for n in range(1, 3000)]
    assert check(Plan("p", Graph(tuple(reversed(steps))))) == []
