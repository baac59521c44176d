"""The page of a run whose steps are nested: graphs, tables and bars of groups, loops and conditions."""

import re
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from allranks.history.page.graphs import RUN, branches, graphs
from allranks.history.page.items import items_of
from allranks.history.page.page import page
from allranks.history.page.timeline import Fold, timeline
from allranks.history.records import OutputRecord, RunRecord, Status, StepRecord
from run_records import NOW, make_curve, make_ranks, make_run, make_step
from shown_page import Page


def make_group(name: str, kind: str, needs: tuple[str, ...] = (), **changes: object) -> StepRecord:
    return make_step(name, needs, kind=kind, component="", **changes)


def make_loop(iterations: int, failed: tuple[int, ...] = ()) -> list[StepRecord]:
    """A do_while loop whose iterations train and evaluate."""
    steps = [make_group("loop", "do_while", status=Status.FAILED if failed else Status.COMPLETED)]
    for index in range(iterations):
        status = Status.FAILED if index in failed else Status.COMPLETED
        metrics = {"accuracy": make_curve(0.1, 0.5 + index / 1000)}
        steps += [
            make_group(f"loop[{index}]", "iteration", status=status),
            make_step(f"loop[{index}].train", metrics=metrics),
            make_step(f"loop[{index}].evaluate", (f"loop[{index}].train",), status=status),
        ]
    return steps


def test_a_pipeline_component_is_a_node_that_unfolds_to_its_own_graph() -> None:
    steps = [
        make_step("prepare"),
        make_group("tune", "pipeline", ("prepare",)),
        make_step("tune.search"),
        make_group("tune.inner", "pipeline", ("tune.search",)),
        make_step("tune.inner.fit"),
        make_step("tune.inner.score", ("tune.inner.fit",)),
    ]
    html = page(make_run(*steps), NOW)
    shown = Page(html)
    drawn = graphs(items_of(steps)).by_place
    assert {place: sorted(node.item.record.name for node in graph.nodes) for place, graph in drawn.items()} == {
        RUN: ["prepare", "tune"],
        1: ["tune.inner", "tune.search"],
        3: ["tune.inner.fit", "tune.inner.score"],
    }
    assert [len(graph.edges) for graph in drawn.values()] == [1, 1, 1]
    links = {attrs["href"] or "" for tag, attrs in shown.tags if tag == "a"}
    ids = [f"#{attrs['id']}" for _, attrs in shown.tags if attrs.get("id")]
    # Every node is linked with its details, and a group with its graph too.
    assert {link for link in links if link.startswith("#graph-")} == {"#graph-step-tune", "#graph-step-tune.inner"}
    assert links >= {f"#step-{step.name}" for step in steps}
    assert links <= set(ids)
    assert len(ids) == len(set(ids))
    assert "3 steps" in shown.first_seen
    assert "score" not in shown.first_seen
    assert "score" in shown.text
    assert html.count('id="arrow"') == 1


def test_an_iteration_is_a_line_and_those_that_failed_or_are_running_are_unfolded() -> None:
    steps = make_loop(5, failed=(3,))
    running = [make_group("loop[5]", "iteration", status=Status.RUNNING, ended=None)]
    running.append(make_step("loop[5].train", status=Status.RUNNING, ended=None))
    steps[0].status = Status.RUNNING
    shown = Page(page(make_run(*steps, *running, status=Status.RUNNING), NOW))
    assert "✓ loop[2] 2 steps · 4.0 s · accuracy 0.502" in shown.text
    for path in ("loop[2]", "loop[3]", "loop[5]"):
        assert path in shown.first_seen
    opened = [item.name for item in items_of([*steps, *running])[0].children if item.is_open]
    assert opened == ["loop[3]", "loop[5]"]
    folds = [attrs for tag, attrs in shown.tags if tag == "details" and "group" in (attrs.get("class") or "")]
    # The loop and two of its six iterations, once in the graph and once in the table.
    assert [("open" in attrs) for attrs in folds].count(True) == 2 * 3
    assert len(folds) == 2 * 7


@pytest.mark.parametrize(("text", "outcome"), [("True", "true"), ("false", "false")])
def test_the_branch_that_a_condition_took_is_labelled_and_the_other_one_skipped(text: str, outcome: str) -> None:
    steps = [
        make_group("better", "condition", inputs={"condition": text}),
        make_step("register", ("better",)),
        make_step("report", ("better",), status=Status.SKIPPED, started=None, ended=None),
        make_step("publish", ("report", "better"), status=Status.SKIPPED, started=None, ended=None),
    ]
    found = {target: (branch.outcome, branch.taken) for (_, target), branch in branches(items_of(steps)).items()}
    other = "false" if outcome == "true" else "true"
    # publish may be skipped because of report: its branch is not known.
    assert found == {"register": (outcome, True), "report": (other, False)}
    shown = Page(page(make_run(*steps), NOW))
    assert f"branch {outcome} of better, taken" in shown.text
    assert f"branch {other} of better, not taken" in shown.text
    assert [attrs.get("class") for tag, attrs in shown.tags if tag == "g"].count("node Skipped") == 2
    assert [attrs.get("class") for tag, attrs in shown.tags if tag == "path"].count("edge untaken") == 1


def test_a_condition_that_has_not_decided_labels_no_branch() -> None:
    waits = make_group("better", "condition", status=Status.NOT_STARTED, started=None, ended=None)
    assert branches(items_of([waits, make_step("register", ("better",))])) == {}


def test_iterations_share_a_chart_of_a_handful_of_curves() -> None:
    steps = make_loop(20)
    steps[3 * 7 + 2].metrics["accuracy"] = make_curve(0.1, 0.99)
    shown = Page(page(make_run(*steps), NOW))
    curves = [attrs for tag, attrs in shown.tags if tag == "figure"]
    assert len(curves) == 1
    assert "loop[*].train" in shown.first_seen
    legend = re.findall(r"\[(\d+)\] 0\.\d+ best", shown.first_seen)
    assert legend == ["0", "7", "16", "17", "18", "19"]
    assert "… 14 more curves without a chart" in shown.first_seen


def test_the_timeline_folds_iterations_below_the_bar_of_their_loop() -> None:
    run = make_run(make_step("prepare"), *make_loop(3))
    drawn = timeline(run, NOW, items_of(run.steps))
    assert drawn is not None
    fold = drawn.parts[1]
    assert isinstance(fold, Fold)
    assert fold.head is not None
    assert [row.name for row in fold.head.rows] == ["loop"]
    assert [part.head.rows[0].name for part in fold.parts if isinstance(part, Fold) and part.head] == [
        "loop[0]",
        "loop[1]",
        "loop[2]",
    ]


def test_of_three_hundred_iterations_the_first_the_last_and_the_failed_ones_are_shown() -> None:
    shown = Page(page(make_run(*make_loop(300, failed=(150,))), NOW))
    for name in ("loop[0]", "loop[150]", "loop[299]"):
        assert name in shown.first_seen
    assert "loop[200]" not in shown.first_seen
    assert "loop[200]" in shown.text
    assert "… 145 more: 145 Completed" in shown.first_seen


def test_a_graph_of_a_thousand_steps_is_a_list_that_is_cut() -> None:
    steps = [make_step(f"step_{index}", (f"step_{index - 1}",) if index else ()) for index in range(1000)]
    steps[600].status = Status.FAILED
    shown = Page(page(make_run(*steps), NOW))
    assert not [attrs for _, attrs in shown.tags if (attrs.get("class") or "").startswith("graph")]
    for name in ("step_0", "step_600", "step_999"):
        assert name in shown.first_seen
    assert "step_500" not in shown.first_seen
    assert "… 550 more: 550 Completed" in shown.first_seen


def test_an_iteration_and_a_loop_without_records_of_their_own_are_groups() -> None:
    steps = [make_step(f"loop[{index}].train", status=Status.SKIPPED, started=None, ended=None) for index in range(2)]
    (loop,) = items_of(steps)
    assert (loop.name, loop.layout, loop.status) == ("loop", "2 iterations", Status.SKIPPED)
    assert "loop[1]" in Page(page(make_run(*steps), NOW)).text


def test_a_pipeline_that_is_nested_three_hundred_levels_deep_has_a_page() -> None:
    names = [".".join(["level"] * depth) for depth in range(1, 301)]
    steps = [make_group(name, "pipeline") for name in names]
    shown = Page(page(make_run(*steps, make_step(f"{names[-1]}.train")), NOW))
    assert f"{names[-1]}.train" in shown.text


def fan(count: int) -> list[StepRecord]:
    names = tuple(f"s{index}" for index in range(count - 2))
    return [make_step("split"), *(make_step(name, ("split",)) for name in names), make_step("merge", names)]


def nested(count: int) -> list[StepRecord]:
    steps = []
    for place in range(count // 10):
        steps.append(make_group(f"p{place}", "pipeline", (f"p{place - 1}",) if place else ()))
        steps += [make_step(f"p{place}.s{index}", (f"p{place}.s{index - 1}",) if index else ()) for index in range(9)]
    return steps


def loop(count: int) -> list[StepRecord]:
    return make_loop(count // 3)


def make_large(shape: Callable[[int], list[StepRecord]], count: int) -> RunRecord:
    steps = shape(count)
    for step in steps:
        folder = f"/home/somebody/project/.allranks/runs/calm_otter/{step.name}"
        step.inputs = {"data": f"{folder}/named-outputs/data", "epochs": "3"}
        step.outputs = [OutputRecord("model", "uri_folder", f"{folder}/named-outputs/model")]
        step.ranks = make_ranks(1, 1)
    return make_run(*steps)


@pytest.mark.recipe
def test_a_page_of_three_thousand_steps_is_of_at_most_five_megabytes() -> None:
    assert len(page(make_large(nested, 3_000), NOW).encode()) < 5_000_000


@pytest.mark.slow
@pytest.mark.parametrize("shape", [fan, loop])
def test_what_a_page_costs_grows_no_faster_than_its_steps(shape: Callable[[int], list[StepRecord]]) -> None:
    def calls(count: int) -> int:
        """Calls of functions, which do not depend on how busy this machine is."""
        run, found = make_large(shape, count), 0

        def observe(frame: FrameType, event: str, argument: object) -> None:
            nonlocal found
            found += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(observe)
        try:
            page(run, NOW)
        finally:
            sys.setprofile(before)
        return found

    calls(10)
    assert calls(200) < 4**1.1 * calls(50)
