from collections.abc import Sequence
from typing import Any

import pytest

from allranks.errors import InputError
from allranks.history.curves import best_metric
from allranks.history.formatting import elapsed, node_layout
from allranks.history.nested import Node, count_steps, in_every_iteration, nested, node_at, records_at, steps_of, walk
from allranks.history.records import Status
from run_records import BEGIN, NOW, make_curve, make_run, make_step


def shape(nodes: Sequence[Node]) -> dict[str, Any]:
    """The tree as names only."""
    return {node.name: shape(node.children) for node in nodes}


def tree_of(*names: str) -> dict[str, Any]:
    return shape(nested([make_step(name) for name in names]))


def test_flat_steps_stay_in_their_order() -> None:
    assert list(tree_of("b", "a", "c")) == ["b", "a", "c"]
    assert tree_of() == {}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["tune", "tune.train", "tune.test", "end"], {"tune": {"train": {}, "test": {}}, "end": {}}),
        (["tune.train", "tune"], {"tune": {"train": {}}}),
        (["a", "a.b", "a.b.c"], {"a": {"b": {"c": {}}}}),
        (["loop", "loop[1]", "loop[1].train"], {"loop": {"loop[1]": {"train": {}}}}),
        (["tune", "tune.loop", "tune.loop[2]"], {"tune": {"loop": {"loop[2]": {}}}}),
        (["outer[0].inner[seed_1].fit"], {"outer": {"outer[0]": {"inner": {"inner[seed_1]": {"fit": {}}}}}}),
        (["branch", "branch.then.register"], {"branch": {"then.register": {}}}),
    ],
)
def test_a_path_gives_the_place(names: list[str], expected: dict[str, Any]) -> None:
    assert tree_of(*names) == expected


def test_a_dot_or_a_bracket_in_a_name_alone_makes_no_group() -> None:
    assert tree_of("prepare", "data.v2", "train.v2") == {"prepare": {}, "data.v2": {}, "train.v2": {}}
    assert tree_of("score [gpu]", "[1]") == {"score [gpu]": {}, "[1]": {}}


def test_every_record_is_at_its_node_and_what_has_none_follows_from_its_steps() -> None:
    steps = [
        make_step("loop[0].train", started=BEGIN + 3, ended=BEGIN + 5),
        make_step("loop[0].test", started=BEGIN + 5, ended=BEGIN + 9),
        make_step("loop[1].train", status=Status.RUNNING, started=BEGIN + 10, ended=None),
    ]
    (loop,) = nested(steps)
    done, running = loop.children
    assert steps_of(loop) == steps
    assert (loop.status, done.status, running.status) == (Status.RUNNING, Status.COMPLETED, Status.RUNNING)
    assert elapsed(done.record, NOW) == 6
    assert elapsed(loop.record, NOW) == NOW - BEGIN - 3


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("Completed Completed", Status.COMPLETED),
        ("NotStarted NotStarted", Status.NOT_STARTED),
        ("Completed NotStarted", Status.RUNNING),
        ("Completed Skipped", Status.COMPLETED),
        ("Skipped Skipped", Status.SKIPPED),
        ("Completed Failed NotStarted", Status.FAILED),
        ("Completed Canceled", Status.CANCELED),
        ("Running Completed", Status.RUNNING),
    ],
)
def test_the_state_of_a_group_without_a_record(states: str, expected: Status) -> None:
    steps = [make_step(f"loop[0].{index}", status=Status(state)) for index, state in enumerate(states.split())]
    assert nested(steps)[0].status is expected


def test_a_groups_layout_says_what_it_holds() -> None:
    loop, tune, waiting, step = nested(
        [
            make_step("loop", kind="do_while"),
            make_step("loop[0].train"),
            make_step("loop[1].train"),
            make_step("tune", kind="pipeline"),
            make_step("tune.inner", kind="pipeline"),
            make_step("tune.inner.a"),
            make_step("waiting", kind="condition"),
            make_step("step"),
        ]
    )
    assert [node_layout(node) for node in (loop, tune, waiting, step)] == ["2 iterations", "1 step", "", "1 process"]
    assert count_steps(each.record for each in walk([loop, tune, waiting, step])) == 4


RUN = make_run(*map(make_step, ("prepare", "loop", "loop[1].train", "loop[2].train", "loop[2].test", "loop[21].train")))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("prepare", ["prepare"]),
        ("loop[2].train", ["loop[2].train"]),
        ("loop.2.train", ["loop[2].train"]),
        ("loop[2]", ["loop[2].train", "loop[2].test"]),
        ("loop.2", ["loop[2].train", "loop[2].test"]),
        ("loop", ["loop", "loop[1].train", "loop[2].train", "loop[2].test", "loop[21].train"]),
    ],
)
def test_records_by_path_also_as_it_is_typed_without_brackets(path: str, found: list[str]) -> None:
    assert [step.name for step in records_at(RUN, path)] == found


def test_a_path_that_no_node_has() -> None:
    with pytest.raises(InputError) as caught:
        node_at(RUN, "loop[2].trian")
    (problem,) = caught.value.problems
    assert problem.where == "run calm_otter, step loop[2].trian"
    assert problem.expected.startswith("one of: prepare, loop, loop[1], loop[1].train")
    assert problem.fix == "did you mean loop[2].train?"


def test_of_many_paths_only_some_are_named() -> None:
    with pytest.raises(InputError) as caught:
        node_at(make_run(*(make_step(f"step_{index}") for index in range(1020))), "other")
    assert caught.value.problems[0].expected.endswith("step_19, and 1,000 more")


def test_the_path_that_iterations_share() -> None:
    assert in_every_iteration("tune.loop[2].inner[a].train") == "tune.loop[*].inner[*].train"
    assert in_every_iteration("prepare") == "prepare"


def test_the_best_metric_of_several_steps() -> None:
    steps = [
        make_step("loop[0].train", metrics={"accuracy": make_curve(0.5, 0.9, 0.7), "loss": make_curve(3, 1)}),
        make_step("loop[1].train", metrics={"accuracy": make_curve(0.6, 0.8), "loss": make_curve(3, 2)}),
    ]
    name, point = best_metric(steps) or ("", None)
    assert (name, point.value if point else None) == ("accuracy", 0.9)
    assert best_metric([make_step("a", metrics={"learning_rate": make_curve(3, 1, 2)})]) == (
        "learning_rate",
        make_curve(3, 1, 2)[-1],
    )
    assert best_metric([make_step("a")]) is None
