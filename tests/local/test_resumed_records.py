"""A run that is resumed forgets how it ended before."""

from pathlib import Path

from allranks.history import stored
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status
from allranks.local.engine import resume
from allranks.local.options import Options
from allranks.plan.graph import Graph, Pipeline, Plan, Step
from allranks.plan.ports import Output
from allranks.workspace import Workspace


class Seen(Observer):
    """What others find in the store once the run has started again."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.found: list[RunRecord] = []

    def started(self, run: RunRecord) -> None:
        self.found.append(stored.run(self.workspace, run.id))


def test_the_end_and_the_verdict_before_are_gone(workspace: Workspace, run_steps, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    command = f"echo left > ${{{{outputs.out}}}}/file; [ -e {flag} ] || {{ echo broken; exit 3; }}"
    step = Step("train", command, outputs=(Output("out", "uri_folder", "rw_mount"),))
    failed = run_steps(plan=Plan("p", Graph((Pipeline("inner", Graph((step,))),))))
    assert failed.verdict.exit_code == 3
    assert failed.ended is not None
    assert "exit code 3" in Path(failed.page).read_text()
    flag.touch()
    seen = Seen(workspace)
    record = resume(failed.id, workspace, Options(instances="loopback"), seen)
    (meanwhile,) = seen.found
    assert (meanwhile.status, meanwhile.ended, meanwhile.verdict) == (Status.RUNNING, None, None)
    assert [(one.status, one.ended, one.outputs) for one in meanwhile.steps] == [(Status.NOT_STARTED, None, [])] * 2
    assert (record.status, record.verdict) == (Status.COMPLETED, None)
    assert record.ended > failed.ended
    assert [(one.status, one.verdict) for one in record.steps] == [(Status.COMPLETED, None)] * 2
    assert "exit code 3" not in Path(record.page).read_text()
    assert stored.run(workspace, failed.id).verdict is None
