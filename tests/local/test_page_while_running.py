"""The page of a run while the engine executes it."""

from __future__ import annotations

from pathlib import Path

from allranks.history import stored
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status
from allranks.history.workspace import Workspace
from allranks.plan.graph import Step


class Seen(Observer):
    """What others find once the run has started."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.pages: list[tuple[str, bool]] = []

    def started(self, run: RunRecord) -> None:
        page = stored.run(self.workspace, run.id).page
        self.pages.append((page, Path(page).exists()))


def test_a_step_finds_its_own_log_on_the_page_of_its_run(workspace: Workspace, run_steps) -> None:
    # It ends when the page shows what it wrote, however slow this machine is.
    live = f"{workspace.runs}/*/run.live.js"
    command = f"echo I am here; for i in $(seq 1200); do grep -q 'I am here' {live} && exit 0; sleep 0.05; done; exit 1"
    seen = Seen(workspace)
    record = run_steps(Step("look", command), observer=seen)
    assert record.status is Status.COMPLETED
    folder = workspace.run_folder(record.id)
    assert record.page == str(folder / "run.html")
    assert seen.pages == [(record.page, True)]
    assert not (folder / "run.live.js").exists()
    assert "I am here" in (folder / "run.html").read_text("utf-8")
