"""Whole runs of plans made by hand, on real processes: ends, time-outs, retries, logs, reuse, resuming."""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

import bounded
from allranks import engine_log
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.history import stored
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.local import requirements
from allranks.local.engine import resume, run
from allranks.local.options import Options
from allranks.plan import codec
from allranks.plan.environment import registered
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace

pytestmark = pytest.mark.slow  # each starts an engine


def test_ranks_have_azure_mls_log_names(kind: str, run_steps) -> None:
    record = run_steps(
        Step("train", "echo out $RANK; echo err >&2", distribution=PyTorch(2), instance_count=2), instances=kind
    )
    logs = [Path(rank.log) for rank in record.step("train").ranks]
    assert [log.name for log in logs] == [f"std_log_process_{rank}.txt" for rank in range(4)]
    assert {log.parent.name for log in logs} == {"user_logs"}
    assert [log.read_text() for log in logs] == [f"out {rank}\nerr\n" for rank in range(4)]


def test_a_failed_step_names_rank_code_and_tail(run_steps) -> None:
    command = "for i in $(seq 30); do echo line $i; done; [ $RANK = 1 ] && { echo broken >&2; exit 3; }; exec sleep 100"
    record = run_steps(Step("train", command, distribution=PyTorch(2)))
    verdict = record.verdict
    assert record.status is Status.FAILED
    assert (verdict.step, verdict.rank, verdict.exit_code, verdict.reason) == ("train", 1, 3, "exit code 3")
    assert verdict.tail[-1] == "broken"
    assert verdict.tail[-2] == "line 30"
    assert verdict.log.endswith("std_log_process_1.txt")


def test_a_rank_ended_by_a_signal_says_which(run_steps) -> None:
    record = run_steps(Step("train", "kill -SEGV $$"))
    assert (record.verdict.signal, record.verdict.exit_code) == ("SIGSEGV", None)
    assert "SIGSEGV" in record.verdict.reason


def test_the_rank_that_reported_first_is_to_blame_not_the_one_that_ended_first(run_steps) -> None:
    report = (
        "import os, time\n"
        "from allranks.contract import report\n"
        "late = os.environ['RANK'] == '1'\n"
        "told = ('ValueError', 'loss is NaN', 'tb', 1.0) if late else ('RuntimeError', 'peer is gone', 'other', 2.0)\n"
        "report.append(report.Failure(*told))\n"
        "raise SystemExit(1)\n"
    )
    record = run_steps(Step("train", f'{sys.executable} -c "{report}"', distribution=PyTorch(2)))
    assert record.verdict.rank == 1
    assert record.verdict.reason == "ValueError: loss is NaN"
    assert record.verdict.traceback == "tb"


def test_a_program_that_is_not_there_is_a_failure_with_its_reason(run_steps) -> None:
    record = run_steps(Step("train", "no-such-program"))
    assert record.status is Status.FAILED
    assert "no-such-program" in record.verdict.tail[-1]


def test_a_step_over_its_time_limit_is_ended(kind: str, run_steps) -> None:
    record = run_steps(Step("train", "exec sleep 1000", timeout=0.3, distribution=PyTorch(2)), instances=kind)
    assert record.status is Status.FAILED
    assert "limits.timeout" in record.verdict.reason


def test_a_retry_has_a_log_folder_of_its_own_and_keeps_outputs(run_steps) -> None:
    command = "echo try; [ -e ${{outputs.out}}/seen ] && exit 0; touch ${{outputs.out}}/seen; exit 1"
    record = run_steps(Step("train", command, outputs=(Output("out", "uri_folder", "rw_mount"),)), retries=2)
    step = record.step("train")
    assert (record.status, step.attempt) == (Status.COMPLETED, 1)
    assert Path(step.ranks[0].log).parent.name == "retry_001"
    assert Path(step.folder, "user_logs", "std_log.txt").read_text() == "try\n"


def test_pipeline_inputs_and_outputs(workspace: Workspace) -> None:
    step = Step(
        "say",
        "echo ${{inputs.x}} ${{inputs.flag}} > ${{outputs.out}}",
        inputs=(Input("x", "number", GraphInput("lr")), Input("flag", "boolean", Literal(True))),
        outputs=(Output("out", "uri_file", "rw_mount"),),
    )
    plan = Plan(
        "p",
        Graph(
            (step,),
            (Input("lr", "number", Literal(1e-05)),),
            (GraphOutput("result", NodeOutput("say", "out"), "uri_file"),),
        ),
    )
    record = run(plan, workspace, Options(instances="loopback"))
    assert Path(record.outputs["result"]).read_text() == "1e-05 True\n"
    assert record.inputs == {"lr": "1e-05"}


def test_a_plan_that_cannot_run_starts_and_writes_nothing(workspace: Workspace) -> None:
    plan = Plan("p", Graph((Step("a", "echo ${{inputs.nope}}"), Step("b", "", distribution=PyTorch(0)))))
    with pytest.raises(InputError) as caught:
        requirements.require(plan)
    assert len(caught.value.problems) >= 2
    assert not workspace.root.exists()


class _Notes(Observer):
    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:
        self.notes.append((step.name if step else "", text))


class TestReuse:
    """An earlier result stands in where nothing that it depends on has changed."""

    @pytest.fixture
    def data(self, tmp_path: Path) -> Path:
        folder = tmp_path / "data"
        folder.mkdir()
        (folder / "x").write_text("1")
        return folder

    @pytest.fixture
    def code(self, tmp_path: Path) -> Path:
        folder = tmp_path / "code"
        folder.mkdir()
        (folder / "copy.sh").write_text("cat $1/x > $2/y; echo $3 >> $2/y; date +%N > $2/stamp")
        return folder

    @pytest.fixture
    def steps(self, data: Path, code: Path) -> tuple[Step, Step]:
        first = Step(
            "prepare",
            "sh copy.sh ${{inputs.data}} ${{outputs.out}} ${{inputs.n}}",
            code=Code(str(code), "digest-1"),
            environment=registered("cpu:1"),
            inputs=(Input("data", "uri_folder", DataPath(str(data)), "ro_mount"), Input("n", "integer", Literal(3))),
            outputs=(Output("out", "uri_folder", "rw_mount"),),
        )
        second = Step(
            "use", "cat ${{inputs.in}}/y", inputs=(Input("in", "uri_folder", NodeOutput("prepare", "out"), "ro_mount"),)
        )
        return first, second

    def test_a_second_run_reuses_everything_and_says_so(self, steps, run_steps, kind: str) -> None:
        first, watcher = run_steps(*steps, instances=kind), _Notes()
        second = run_steps(*steps, instances=kind, observer=watcher)
        assert [step.reused_from for step in second.steps] == [first.id, first.id]
        assert second.step("prepare").outputs == first.step("prepare").outputs
        assert ("prepare", f"reused from run {first.id}") in watcher.notes

    def test_a_third_run_names_the_run_that_did_the_work(self, steps, run_steps) -> None:
        first, _, third = (run_steps(*steps) for _ in range(3))
        assert third.step("prepare").reused_from == first.id

    def test_force_rerun_reuses_nothing(self, steps, run_steps) -> None:
        run_steps(*steps)
        assert [step.reused_from for step in run_steps(*steps, force_rerun=True).steps] == [None, None]

    def test_a_step_that_is_not_deterministic_always_runs(self, steps, run_steps) -> None:
        steps = (replace(steps[0], deterministic=False), steps[1])
        run_steps(*steps)
        assert run_steps(*steps).step("prepare").reused_from is None

    CHANGES: ClassVar[dict[str, Callable[[Step], Step]]] = {
        "command": lambda step: replace(step, command=step.command + " again"),
        "code": lambda step: replace(step, code=Code(step.code.folder, "digest-2")),
        "environment": lambda step: replace(step, environment=registered("cpu:2")),
        "variables": lambda step: replace(step, environment_variables={"A": "1"}),
        "layout": lambda step: replace(step, distribution=PyTorch(1), instance_count=1),
        "parameter": lambda step: replace(step, inputs=(step.inputs[0], Input("n", "integer", Literal(4)))),
        "outputs": lambda step: replace(step, outputs=(*step.outputs, Output("more", "uri_folder", "rw_mount"))),
    }

    def test_a_change_runs_the_step_again(self, steps, run_steps) -> None:
        step = steps[0]
        changed = (replace(change(step), name=name) for name, change in self.CHANGES.items())
        first = run_steps(step)
        again = run_steps(step, *changed)
        assert again.status is Status.COMPLETED, again.verdict
        assert [each.name for each in again.steps if each.reused_from == first.id] == ["prepare"]

    def test_new_content_of_an_input_runs_the_step_again_but_a_new_place_does_not(
        self, steps, run_steps, data: Path, tmp_path: Path
    ) -> None:
        run_steps(*steps)
        moved = data.rename(tmp_path / "moved")
        inputs = (Input("data", "uri_folder", DataPath(str(moved)), "ro_mount"), steps[0].inputs[1])
        same = (replace(steps[0], inputs=inputs), steps[1])
        assert run_steps(*same).step("prepare").reused_from is not None
        (moved / "x").write_text("2")
        assert run_steps(*same).step("prepare").reused_from is None

    def test_a_result_that_was_changed_since_is_not_reused(self, steps, run_steps) -> None:
        first, watcher = run_steps(*steps), _Notes()
        Path(first.step("prepare").outputs[0].path, "y").write_text("spoilt")
        second = run_steps(*steps, observer=watcher)
        assert second.step("prepare").reused_from is None
        assert any("have changed or are gone" in text for _, text in watcher.notes)

    def test_a_failed_step_is_not_reused(self, run_steps) -> None:
        step = Step("a", "exit 1")
        run_steps(step)
        assert run_steps(step).step("a").reused_from is None


class TestResume:
    """A run whose engine was killed goes on where it was."""

    ENGINE = """
import sys
from pathlib import Path
from allranks.plan import codec
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.environment import registered
from allranks.workspace import Workspace
run(codec.loads(sys.argv[1]), Workspace(Path(sys.argv[2])), Options(instances=sys.argv[3]))
"""

    def test_after_sigkill_finished_steps_are_not_done_again(self, workspace: Workspace, kind: str) -> None:
        # In the rack a rank sees the workspace, but not the rest of /tmp.
        scratch = workspace.root / "scratch"
        scratch.mkdir(parents=True)
        fifo = scratch / "reached"
        os.mkfifo(fifo)
        count = "echo ran >> " + str(scratch / "{}")
        half = "[ -e ${{outputs.out}}/half ] && exit 0; touch ${{outputs.out}}/half"
        train = f"{count.format('train')}; {half}; echo > {fifo}; exec sleep 1000"
        plan = Plan(
            "p",
            Graph(
                (
                    Step("prepare", count.format("prepare")),
                    Step("train", train, after=("prepare",), outputs=(Output("out", "uri_folder", "rw_mount"),)),
                    Step("evaluate", count.format("evaluate"), after=("train",)),
                )
            ),
        )
        engine = bounded.Popen([sys.executable, "-c", self.ENGINE, codec.dumps(plan), str(workspace.root), kind])
        fifo.read_text()  # blocks until the training step has come so far
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        (before,) = stored.runs(workspace)
        assert before.status is Status.INTERRUPTED
        # The start is saved while the ranks start, so one may be faster.
        assert before.step("train").status in (Status.INTERRUPTED, Status.NOT_STARTED)

        record = resume("latest", workspace, Options())
        assert (record.id, record.status, record.instances) == (before.id, Status.COMPLETED, kind)
        ran = {name: (scratch / name).read_text().count("ran") for name in ("prepare", "train", "evaluate")}
        assert ran == {"prepare": 1, "train": 2, "evaluate": 1}
        assert "the engine that executed the run before was killed" in record.notes
        lines = (Path(record.folder) / engine_log.FILE).read_text().splitlines()
        events = [(line["process"], line["event"]) for line in map(json.loads, lines)]
        assert [event for event in events if event[1].startswith(("run ", "engine "))] == [
            ("engine", event) for event in ("run started", "run started", "engine was killed", "run ended")
        ]
        assert ("engine", "rank exited") in events
        attempt, log = record.step("train").attempt, Path(record.step("train").ranks[0].log)
        assert attempt == (before.step("train").status is Status.INTERRUPTED)
        assert log.parent.name == ("retry_001" if attempt else "user_logs")

    def test_a_failed_run_can_be_resumed(self, run_steps, workspace: Workspace, tmp_path: Path) -> None:
        first = Step("a", f"[ -e {tmp_path}/mended ]", azure_only=("identity",))
        failed = run_steps(first, Step("b", "true", after=("a",)))
        (tmp_path / "mended").touch()
        resumed = resume(failed.id, workspace, Options())
        assert (resumed.status, resumed.notes) == (Status.COMPLETED, ["no effect on this machine: identity of a"])

    def test_the_last_node_of_a_resumed_run_runs_again(self, run_steps, workspace: Workspace, tmp_path: Path) -> None:
        last = Step("last", f"echo last >> {tmp_path}/log", deterministic=False)
        steps = (Step("a", f"[ -e {tmp_path}/mended ]"), last)
        failed = run_steps(plan=Plan("plan", Graph(steps, last="last")))
        assert {step.name: step.status for step in failed.steps} == {"a": Status.FAILED, "last": Status.COMPLETED}
        (tmp_path / "mended").touch()
        assert resume(failed.id, workspace, Options()).status is Status.COMPLETED
        assert (tmp_path / "log").read_text() == "last\nlast\n"

    def test_a_complete_run_is_not_resumed(self, run_steps, workspace: Workspace) -> None:
        done = run_steps(Step("a", "true"))
        with pytest.raises(InputError, match="is complete"):
            resume(done.id, workspace, Options())

    def test_there_must_be_such_a_run(self, run_steps, workspace: Workspace) -> None:
        run_steps(Step("a", "true"))
        with pytest.raises(InputError, match="no such run"):
            resume("zzz", workspace, Options())
