"""Resume a run with the latest version of its pipeline, on real processes."""

from dataclasses import replace
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.history.records import RunRecord, Status
from allranks.local.engine import resume, run
from allranks.local.options import Options
from allranks.plan.graph import DoWhile, Graph, Pipeline, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace

LOOPBACK = Options(instances="loopback")
OUT = (Output("out", "uri_file", "rw_mount"),)
FAILS = "cat ${{inputs.data}} > ${{outputs.out}}; echo old >> ${{outputs.out}}; exit 1"
WORKS = "cat ${{outputs.out}}; cat ${{inputs.data}} > ${{outputs.out}}"


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """A folder with a file for each step, with a line for each time that it has run."""
    folder = tmp_path / "counts"
    folder.mkdir()
    return folder


def counted(counts: Path, name: str, command: str, *ports: Input, deterministic: bool = True) -> Step:
    return Step(name, f"echo x >> {counts}/{name}; {command}", inputs=ports, outputs=OUT, deterministic=deterministic)


def plan(counts: Path, *, first: str = "echo 1 > ${{outputs.out}}", second: str, deterministic: bool = True) -> Plan:
    data = Input("data", "uri_file", NodeOutput("first", "out"), "ro_mount")
    steps = (counted(counts, "first", first, deterministic=deterministic), counted(counts, "second", second, data))
    return Plan("chain", Graph(steps))


def times(counts: Path, name: str) -> int:
    file = counts / name
    return len(file.read_text().splitlines()) if file.exists() else 0


def continued(record: RunRecord, workspace: Workspace, latest: Plan) -> RunRecord:
    return resume(record.id, workspace, LOOPBACK, None, latest)


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_finished_step_that_has_not_changed_is_kept(workspace: Workspace, counts: Path, deterministic: bool) -> None:
    failed = run(plan(counts, second=FAILS, deterministic=deterministic), workspace, LOOPBACK)
    before = failed.step("first")
    record = continued(failed, workspace, plan(counts, second=WORKS, deterministic=deterministic))
    assert record.status is Status.COMPLETED
    assert (times(counts, "first"), times(counts, "second")) == (1, 2)
    after = record.step("first")
    assert (after.started, after.attempt, after.folder) == (before.started, 0, before.folder)
    # The step that did not complete finds its files, and its attempts are counted on.
    step = record.step("second")
    assert step.attempt == 1
    assert Path(step.ranks[0].log).read_text() == "1\nold\n"
    assert Path(step.outputs[0].path).read_text() == "1\n"


def test_a_finished_step_that_has_changed_runs_again_and_so_does_what_needs_its_output(
    workspace: Workspace, counts: Path
) -> None:
    failed = run(plan(counts, second=FAILS), workspace, LOOPBACK)
    before = failed.step("first").outputs[0]
    record = continued(failed, workspace, plan(counts, first="echo 2 > ${{outputs.out}}", second=WORKS))
    after = record.step("first").outputs[0]
    assert (times(counts, "first"), record.step("first").attempt) == (2, 1)
    assert Path(record.step("second").outputs[0].path).read_text() == "2\n"
    assert (Path(before.path).read_text(), Path(after.path).read_text()) == ("1\n", "2\n")


def test_a_step_whose_output_is_the_same_after_it_ran_again_does_not_affect_others(
    workspace: Workspace, counts: Path
) -> None:
    third = counted(counts, "third", "exit 1")
    steps = plan(counts, second=WORKS).graph.nodes
    failed = run(Plan("chain", Graph((*steps, third))), workspace, LOOPBACK)
    steps = plan(counts, first="printf '1\\n' > ${{outputs.out}}", second=WORKS).graph.nodes
    fixed = replace(third, command="true > ${{outputs.out}}")
    record = continued(failed, workspace, Plan("chain", Graph((*steps, fixed))))
    assert record.status is Status.COMPLETED
    assert [times(counts, name) for name in ("first", "second", "third")] == [2, 1, 1]


def test_data_that_was_changed_is_read_again(workspace: Workspace, counts: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("old")
    port = Input("data", "uri_file", DataPath(str(data)), "ro_mount")
    reads = counted(counts, "first", "cat ${{inputs.data}} > ${{outputs.out}}", port)
    failed = run(Plan("p", Graph((reads, counted(counts, "second", "exit 1")))), workspace, LOOPBACK)
    data.write_text("new")
    record = continued(failed, workspace, Plan("p", Graph((reads, Step("second", "true")))))
    assert Path(record.step("first").outputs[0].path).read_text() == "new"


def test_later_runs_reuse_the_latest_result_and_no_discarded_one(workspace: Workspace, counts: Path) -> None:
    old = plan(counts, second=FAILS)
    failed = run(old, workspace, LOOPBACK)
    continued(failed, workspace, plan(counts, first="echo 2 > ${{outputs.out}}", second=WORKS))
    again = run(plan(counts, first="echo 2 > ${{outputs.out}}", second=WORKS), workspace, LOOPBACK)
    assert again.step("second").reused_from == failed.id
    run(old, workspace, LOOPBACK)
    assert times(counts, "first") == 3


def test_a_new_step_is_added_and_a_removed_one_is_gone(workspace: Workspace, counts: Path) -> None:
    failed = run(plan(counts, second=FAILS), workspace, LOOPBACK)
    first, _ = plan(counts, second=WORKS).graph.nodes
    record = continued(failed, workspace, Plan("chain", Graph((first, Step("other", "true")))))
    assert {step.name: step.status for step in record.steps} == {"first": Status.COMPLETED, "other": Status.COMPLETED}
    assert times(counts, "first") == 1


def test_a_loop_keeps_the_iterations_that_have_not_changed(workspace: Workspace, counts: Path) -> None:
    def looping(fails: str) -> Plan:
        command = f"n=$(( ${{{{inputs.n}}}} + 1 )); printf $n > ${{{{outputs.n}}}}; {fails}"
        body = Pipeline(
            "body",
            Graph(
                (
                    Step(
                        "count",
                        f"echo x >> {counts}/count; {command}",
                        inputs=(Input("n", "integer", GraphInput("n")),),
                        outputs=(Output("n", "integer"),),
                    ),
                    Step(
                        "use",
                        "test ${{inputs.n}} != 2 || exit $FAIL",
                        inputs=(Input("n", "integer", NodeOutput("count", "n")),),
                        environment_variables={"FAIL": "0" if not fails else "1"},
                    ),
                ),
                (Input("n", "integer"),),
                (GraphOutput("n", NodeOutput("count", "n"), "integer"),),
            ),
            inputs=(Input("n", "integer", Literal(0)),),
            outputs=(Output("n", "integer"),),
        )
        return Plan("p", Graph((DoWhile("loop", body, feedback=(("n", "n"),), limit=3),)))

    failed = run(looping(":"), workspace, LOOPBACK)
    assert failed.step("loop[1].use").status is Status.FAILED
    record = continued(failed, workspace, replace(looping(":"), graph=_without_fail(looping(":").graph)))
    assert record.status is Status.COMPLETED
    assert times(counts, "count") == 3
    assert record.step("loop[1].use").attempt == 1


def _without_fail(graph: Graph) -> Graph:
    from allranks.plan.walk import with_steps

    return with_steps(
        graph, lambda step, _: replace(step, environment_variables={"FAIL": "0"}) if step.name == "use" else step
    )


def test_a_complete_run_cannot_be_continued(workspace: Workspace, counts: Path) -> None:
    latest = plan(counts, second=WORKS)
    record = run(latest, workspace, LOOPBACK)
    with pytest.raises(InputError, match="is complete"):
        continued(record, workspace, latest)
