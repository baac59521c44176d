"""Runs of selected steps, on real processes."""

from pathlib import Path

import pytest

from allranks.history.records import RunRecord, Status
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.local.selection import Selection
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Literal, NodeOutput, Output
from allranks.workspace import Workspace

OUT = (Output("out", "uri_file", "rw_mount"),)


def plan(text: str = "1", *, deterministic: bool = True) -> Plan:
    """A chain of three steps. Each writes what the one before wrote, and a letter."""
    return Plan(
        "chain",
        Graph(
            (
                Step(
                    "first",
                    "echo ${{inputs.text}} > ${{outputs.out}}",
                    inputs=(Input("text", "string", Literal(text)),),
                    outputs=OUT,
                    deterministic=deterministic,
                ),
                _next("second", "first"),
                _next("third", "second"),
            )
        ),
    )


def _next(name: str, before: str) -> Step:
    command = f"echo $(cat ${{{{inputs.data}}}}) {name[0]} > ${{{{outputs.out}}}}"
    port = Input("data", "uri_file", NodeOutput(before, "out"), "ro_mount")
    return Step(name, command, inputs=(port,), outputs=OUT)


def execute(
    workspace: Workspace, job: Plan, origin: RunRecord | None = None, **selection: str
) -> tuple[RunRecord, dict[str, str]]:
    """Run the selected steps. Return the record, and what happened to each step."""
    chosen = Selection(**{name: tuple(paths.split()) for name, paths in selection.items()})
    record = run(job, workspace, Options(instances="loopback", selection=chosen), None, origin)
    return record, {step.name: "reused" if step.reused_from else str(step.status) for step in record.steps}


def written(record: RunRecord, step: str) -> str:
    return Path(record.step(step).outputs[0].path).read_text().strip()


def test_until_runs_a_step_and_what_it_needs(workspace: Workspace) -> None:
    record, states = execute(workspace, plan(), until="second")
    assert states == {"first": "Completed", "second": "Completed", "third": "NotStarted"}
    assert record.status is Status.COMPLETED


def test_from_runs_a_step_and_all_after_it_although_their_results_could_be_reused(workspace: Workspace) -> None:
    execute(workspace, plan())
    record, states = execute(workspace, plan(), start="second")
    assert states == {"first": "reused", "second": "Completed", "third": "Completed"}
    assert written(record, "third") == "1 s t"


def test_only_runs_one_step_on_earlier_results(workspace: Workspace) -> None:
    execute(workspace, plan())
    record, states = execute(workspace, plan(), only="second")
    assert states == {"first": "reused", "second": "Completed", "third": "NotStarted"}
    assert record.status is Status.COMPLETED


@pytest.mark.parametrize(
    ("deterministic", "reason"), [(True, "no earlier run has a result"), (False, "not deterministic")]
)
def test_a_step_without_a_result_to_reuse_fails_and_starts_nothing(
    workspace: Workspace, deterministic: bool, reason: str
) -> None:
    record, states = execute(workspace, plan(deterministic=deterministic), only="second")
    assert states == {"first": "Failed", "second": "NotStarted", "third": "NotStarted"}
    assert record.verdict is not None
    assert reason in record.verdict.reason


def test_results_of_one_run_are_reused_whatever_their_inputs_were(workspace: Workspace) -> None:
    origin, _ = execute(workspace, plan("1", deterministic=False))
    record, states = execute(workspace, plan("2", deterministic=False), origin, start="second")
    assert states == {"first": "reused", "second": "Completed", "third": "Completed"}
    assert written(record, "third") == "1 s t"


def test_a_result_that_the_run_does_not_have_cannot_be_reused(workspace: Workspace) -> None:
    origin, _ = execute(workspace, plan(), until="first")
    record, _ = execute(workspace, plan(), origin, only="third")
    assert record.verdict is not None
    assert record.verdict.step == "second"
    assert f"did not complete in run {origin.id}" in record.verdict.reason


def test_a_result_that_was_changed_cannot_be_reused(workspace: Workspace) -> None:
    origin, _ = execute(workspace, plan())
    Path(origin.step("first").outputs[0].path).write_text("changed")
    record, states = execute(workspace, plan(), origin, only="second")
    assert states["first"] == "Failed"
    assert record.verdict is not None
    assert "changed or are gone" in record.verdict.reason
