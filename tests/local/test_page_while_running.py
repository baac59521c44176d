"""The page of a run while the engine executes it."""

import pytest

from allranks.history.page import live_page
from allranks.history.records import Status
from allranks.plan.graph import Step
from allranks.workspace import Workspace


def test_a_step_finds_its_own_log_on_the_page_of_its_run(
    workspace: Workspace, run_steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page, "_INTERVAL", 0.1)
    # It ends when the page shows what it wrote, however slow this machine is.
    page = f"{workspace.runs}/*/run.html"
    command = f"echo I am here; for i in $(seq 400); do grep -q '>I am here' {page} && exit 0; sleep 0.05; done; exit 1"
    record = run_steps(Step("look", command))
    assert record.status is Status.COMPLETED
    assert record.page == str(workspace.run_folder(record.id) / "run.html")
