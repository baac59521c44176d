"""Nested pipelines, conditions and loops as the executor runs them: what runs, with which values, and what resumes."""

import asyncio
import json
from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.plan.graph import Condition, DoWhile, Graph, Item, ParallelFor, Pipeline, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output
from trials import Trials


def text_in(name: str, value: object) -> Input:
    return Input(name, "string", value)  # type: ignore[arg-type]


def test_values_pass_through_two_levels(trial_of: Trials) -> None:
    inner = Graph(
        (Step("say", "", inputs=(text_in("text", GraphInput("word")),), outputs=(Output("said", "string"),)),),
        (text_in("word", None), text_in("other", Literal("by default"))),
        (GraphOutput("said", NodeOutput("say", "said"), "string"),),
    )
    middle = Graph(
        (Pipeline("inner", inner, inputs=(text_in("word", GraphInput("text")),), outputs=(Output("said", "string"),)),),
        (text_in("text", None),),
        (GraphOutput("result", NodeOutput("inner", "said"), "string"),),
    )
    trial = trial_of(
        Pipeline(
            "outer", middle, inputs=(text_in("text", GraphInput("given")),), outputs=(Output("result", "string"),)
        ),
        Step("last", "", inputs=(text_in("text", NodeOutput("outer", "result")),)),
        inputs={"given": "hello"},
        writes={"outer.inner.say": "said hello"},
    )
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == ["outer.inner.say", "last"]
    assert trial.given == {"outer.inner.say": {"text": "hello"}, "last": {"text": "said hello"}}
    assert [record.kind for record in trial.run.steps] == ["pipeline", "command", "pipeline", "command"]
    assert trial.run.step("outer.inner").inputs == {"word": "hello", "other": "by default"}


@pytest.mark.parametrize("outcome", [True, False])
def test_one_branch_runs_and_what_needs_the_other_is_skipped(trial_of: Trials, outcome: bool) -> None:
    made = (Output("made", "uri_folder"),)
    trial = trial_of(
        Step("decide", "", outputs=(Output("better", "boolean"),)),
        Condition("choose", NodeOutput("decide", "better"), then=("register",), otherwise=("report",)),
        Step("register", "", outputs=made),
        Step("report", "", outputs=made),
        Step("needs_register", "", inputs=(Input("model", "uri_folder", NodeOutput("register", "made")),)),
        Step(
            "needs_neither",
            "",
            inputs=(
                Input("model", "uri_folder", NodeOutput("register", "made"), optional=True),
                Input("report", "uri_folder", NodeOutput("report", "made"), optional=True),
            ),
        ),
        writes={"decide": str(outcome)},
    )
    assert trial.execute() is Status.COMPLETED
    ran, skipped = ("register", "report") if outcome else ("report", "register")
    states = trial.states()
    assert (states[ran], states[skipped]) == (Status.COMPLETED, Status.SKIPPED)
    assert states["needs_register"] is (Status.COMPLETED if outcome else Status.SKIPPED)
    assert trial.given["needs_neither"] == {("model" if outcome else "report"): f"/{ran}/made"}


def test_a_condition_that_cannot_be_read_fails(trial_of: Trials) -> None:
    trial = trial_of(
        Step("decide", "", outputs=(Output("better", "boolean"),)),
        Condition("choose", NodeOutput("decide", "better"), then=("register",)),
        Step("register", ""),
        writes={"decide": "perhaps"},
    )
    assert trial.execute() is Status.FAILED
    verdict = trial.run.step("choose").verdict
    assert verdict is not None
    assert "'perhaps'" in verdict.reason
    assert trial.states()["register"] is Status.NOT_STARTED


def loop(limit: int = 10) -> DoWhile:
    body = Graph(
        (
            Step(
                "train",
                "",
                inputs=(Input("state", "string", GraphInput("state"), optional=True),),
                outputs=(Output("state", "string"), Output("more", "boolean")),
            ),
        ),
        (Input("state", "string", None, optional=True),),
        (
            GraphOutput("state", NodeOutput("train", "state"), "string"),
            GraphOutput("more", NodeOutput("train", "more")),
        ),
    )
    outputs = (Output("state", "string"), Output("more", "boolean"))
    inputs = (Input("state", "string", Literal("start"), optional=True),)
    return DoWhile("loop", Pipeline("body", body, inputs=inputs, outputs=outputs), "more", (("state", "state"),), limit)


AFTER = Step("after", "", inputs=(Input("state", "string", NodeOutput("loop", "state")),))


def test_a_loop_feeds_its_outputs_back_until_its_condition_is_false(trial_of: Trials) -> None:
    # Each output of a step has the same text here: what is fed back says whether there is another iteration.
    writes = {"loop[0].train": "True", "loop[1].train": "true", "loop[2].train": "False"}
    trial = trial_of(loop(), AFTER, writes=writes)
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == ["loop[0].train", "loop[1].train", "loop[2].train", "after"]
    assert [trial.given[name]["state"] for name in trial.tries] == ["start", "True", "true", "False"]
    assert trial.run.step("loop[1]").kind == "iteration"


def test_a_loop_ends_at_its_limit(trial_of: Trials) -> None:
    trial = trial_of(loop(2), writes={f"loop[{number}].train": "True" for number in range(9)})
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == ["loop[0].train", "loop[1].train"]
    assert any("2 iterations" in note for note in trial.run.step("loop").notes)


def test_a_failed_iteration_fails_the_loop_and_resume_goes_on_inside_it(trial_of: Trials) -> None:
    writes = {"loop[0].train": "True", "loop[1].train": "True", "loop[2].train": "False"}
    trial = trial_of(loop(), AFTER, writes=writes, ends={"loop[1].train": [Status.FAILED]})
    assert trial.execute() is Status.FAILED
    assert trial.states()["loop"] is Status.FAILED
    trial.again()
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == ["loop[0].train", "loop[1].train", "loop[1].train", "loop[2].train", "after"]


def each(items: object, **options: object) -> ParallelFor:
    body = Step(
        "train",
        "",
        inputs=(Input("seed", "integer"), Input("lr", "string", GraphInput("lr"))),
        outputs=(Output("score", "number"), Output("model", "uri_folder")),
    )
    outputs = (Output("score", "string"), Output("model", "mltable"))
    return ParallelFor("each", body, items, outputs, **options)  # type: ignore[arg-type]


def test_a_body_runs_for_each_item_and_its_outputs_are_gathered(trial_of: Trials, tmp_path: Path) -> None:
    items = (Item("a", (("seed", Literal(1)),)), Item("b", (("seed", Literal(2)),)))
    use = Step("use", "", inputs=(Input("scores", "string", NodeOutput("each", "score")),))
    trial = trial_of(each(items), use, inputs={"lr": "0.1"}, writes={"each[a].train": "0.5", "each[b].train": "0.25"})
    assert trial.execute() is Status.COMPLETED
    assert trial.given["each[a].train"] == {"seed": "1", "lr": "0.1"}
    assert trial.given["each[b].train"] == {"seed": "2", "lr": "0.1"}
    assert frozenset({"each[a].train", "each[b].train"}) in trial.at_once
    assert json.loads(trial.given["use"]["scores"]) == [0.5, 0.25]
    table = next(output for output in trial.run.step("each").outputs if output.name == "model")
    assert json.loads((Path(table.path) / "MLTable").read_text())["paths"] == [
        {"file": "file:///each[a].train/model"},
        {"file": "file:///each[b].train/model"},
    ]


def test_items_may_be_known_when_the_loop_starts(trial_of: Trials) -> None:
    list_items = Step("list", "", outputs=(Output("items", "string"),))
    trial = trial_of(
        list_items,
        each(NodeOutput("list", "items"), max_concurrency=1),
        inputs={"lr": "0.1"},
        writes={"list": '[{"seed": 3}, {"seed": 4}]', "each[0].train": "1", "each[1].train": "2"},
    )
    assert trial.execute() is Status.COMPLETED
    assert [trial.given[f"each[{number}].train"]["seed"] for number in range(2)] == ["3", "4"]
    assert max(map(len, trial.at_once)) == 1


def test_items_that_cannot_be_read_fail_the_loop_alone(trial_of: Trials) -> None:
    list_items = Step("list", "", outputs=(Output("items", "string"),))
    trial = trial_of(list_items, each(NodeOutput("list", "items")), Step("other", ""), writes={"list": "1, 2"})
    assert trial.execute() is Status.FAILED
    verdict = trial.run.step("each").verdict
    assert verdict is not None
    assert "'1, 2'" in verdict.reason
    assert trial.states()["other"] is Status.COMPLETED


def test_what_a_loop_decided_is_kept_when_the_run_is_resumed(trial_of: Trials) -> None:
    list_items = Step("list", "", outputs=(Output("items", "string"),))
    trial = trial_of(
        list_items,
        each(NodeOutput("list", "items")),
        writes={"list": '[{"seed": 3}, {"seed": 4}]'},
        ends={"each[1].train": [Status.FAILED]},
    )
    assert trial.execute() is Status.FAILED
    # The items were decided; that the step would list others now makes no difference.
    trial.run.step("list").outputs[0].value = "[]"
    trial.again()
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == ["list", "each[0].train", "each[1].train", "each[1].train"]


def test_a_canceled_node_takes_what_it_holds_and_what_needs_it_with_it(trial_of: Trials) -> None:
    inner = Graph((Step("a", ""), Step("b", "", after=("a",))))
    trial = trial_of(
        Pipeline("tune", inner, outputs=(Output("model", "uri_folder"),)),
        Step("needs_it", "", after=("tune",)),
        Step("other", ""),
    )
    asyncio.run(trial.executor.cancel("tune"))
    assert trial.execute() is Status.CANCELED
    assert trial.tries == ["other"]
    assert trial.states()["tune"] is Status.CANCELED
    assert trial.states()["needs_it"] is Status.NOT_STARTED
