"""The graph of steps."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from allranks.history.page.graphs import graph
from allranks.history.page.items import items_of
from allranks.history.records import StepRecord
from run_records import make_step


@st.composite
def runs_of_steps(draw: st.DrawFn) -> list[StepRecord]:
    count = draw(st.integers(1, 40))
    steps = []
    for index in range(count):
        needs = draw(st.lists(st.integers(0, index - 1), max_size=3, unique=True)) if index else []
        steps.append(make_step(f"s{index}", tuple(f"s{need}" for need in needs)))
    return steps


@settings(deadline=None)
@given(steps=runs_of_steps())
def test_boxes_lie_apart_within_the_picture_and_edges_go_forwards(steps: list[StepRecord]) -> None:
    drawn = graph(items_of(steps))
    assert sorted(node.item.record.name for node in drawn.nodes) == sorted(step.name for step in steps)
    places = {node.item.record.name: node for node in drawn.nodes}
    for node in drawn.nodes:
        assert 0 <= node.x <= drawn.width - drawn.box_width
        assert 0 <= node.y <= drawn.height - drawn.box_height
        for need in node.item.record.needs:
            assert places[need].x + drawn.box_width <= node.x or places[need].y + drawn.box_height <= node.y
    for one, other in combinations(drawn.nodes, 2):
        apart = abs(one.x - other.x) >= drawn.box_width or abs(one.y - other.y) >= drawn.box_height
        assert apart, (one, other)


def test_a_short_chain_runs_sideways_and_a_long_one_downwards() -> None:
    def chain(length: int) -> list[StepRecord]:
        return [make_step(f"s{index}", (f"s{index - 1}",) if index else ()) for index in range(length)]

    short, long = graph(items_of(chain(4))), graph(items_of(chain(100)))
    assert len({node.y for node in short.nodes}) == 1
    assert len({node.x for node in long.nodes}) == 1
    assert len(short.edges) == 3
    assert long.width < 300


def test_a_graph_with_every_possible_edge_is_drawn() -> None:
    steps = [make_step(f"s{index}", tuple(f"s{need}" for need in range(index))) for index in range(100)]
    assert len(graph(items_of(steps)).edges) == 99 * 100 / 2
