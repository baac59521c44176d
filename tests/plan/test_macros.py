"""Macros in the values of a pipeline's inputs: what they are worth in a run, when it is resumed, and in a reuse key."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from allranks.checks.plan import findings
from allranks.history import stored
from allranks.history.records import RunRecord, Status
from allranks.history.store import Store
from allranks.local.engine import resume, run
from allranks.local.options import Options
from allranks.plan.codec import loads
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal, Output
from allranks.workspace import Workspace

FIRED = datetime(2026, 3, 29, 4, 30, tzinfo=timezone(timedelta(hours=2)))
TRIGGERED = "${{creation_context.trigger_time}}"
SAY = Step(
    "say",
    "echo '${{inputs.text}}' > ${{outputs.said}}; $[[test -e ${{inputs.mended}}]]",
    inputs=(Input("text", "string", GraphInput("text")), Input("mended", "string", optional=True)),
    outputs=(Output("said", "uri_file", "rw_mount"),),
)


def plan(text: str, step: Step = SAY, kind: str = "string") -> Plan:
    return Plan("p", Graph((step,), (Input("text", kind, Literal(text)),)))


def execute(workspace: Workspace, text: str, **options: object) -> RunRecord:
    return run(plan(text), workspace, Options(instances="loopback", **options))  # type: ignore[arg-type]


def said(record: RunRecord) -> str:
    (output,) = record.step("say").outputs
    return Path(output.path).read_text().rstrip("\n")


def test_the_time_is_the_firing_in_utc_and_the_name_the_runs(workspace: Workspace) -> None:
    record = execute(workspace, f"at {TRIGGERED} by ${{{{ name }}}}", trigger_time=FIRED)
    assert said(record) == f"at 2026-03-29 02:30:00 by {record.id}"
    assert record.inputs == {"text": said(record)}
    with Store(workspace.database) as store:
        assert loads(store.plan(record.id)) == plan(f"at {TRIGGERED} by ${{{{ name }}}}")


def test_a_resumed_run_keeps_its_own(workspace: Workspace, tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    text, waits = SAY.inputs
    step = replace(SAY, inputs=(text, replace(waits, value=Literal(str(mended)))))
    failed = run(plan(f"{TRIGGERED} ${{{{name}}}}", step), workspace, Options(instances="loopback"))
    assert failed.status is Status.FAILED
    mended.touch()
    resumed = resume(failed.id, workspace, Options(trigger_time=datetime(2000, 1, 1)))
    assert said(resumed) == failed.inputs["text"]
    assert stored.run(workspace, failed.id).inputs == failed.inputs


def test_a_step_is_reused_for_the_same_time_alone(workspace: Workspace) -> None:
    first, same, later = (
        execute(workspace, TRIGGERED, trigger_time=FIRED + timedelta(days=days)) for days in (0, 0, 1)
    )
    assert same.step("say").reused_from == first.id
    assert later.step("say").reused_from is None
    assert said(later) == "2026-03-30 02:30:00"


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("string", "${{creation_context.time}}", "${{creation_context.time}} is not a macro"),
        ("integer", TRIGGERED, f"{TRIGGERED} is not a macro"),
    ],
    ids=["unknown", "not in a string"],
)
def test_what_is_not_a_macro(kind: str, text: str, found: str) -> None:
    problem, *_ = findings(plan(text, kind=kind)).found
    assert (problem.found, problem.expected) == (found, f"{TRIGGERED} or ${{{{name}}}}, in a string")


def test_a_step_has_no_macro_of_its_own() -> None:
    text, waits = SAY.inputs
    step = replace(SAY, inputs=(replace(text, value=Literal(TRIGGERED)), waits))
    (problem,) = findings(Plan("p", Graph((step,)))).found
    assert problem.found == f"{TRIGGERED} is not a binding"
