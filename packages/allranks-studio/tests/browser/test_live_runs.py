"""The table of runs follows the store while engines write it."""

from pathlib import Path

from allranks.history import locks
from allranks.history.records import Status
from allranks.history.store import Store
from allranks.workspace import Workspace
from chromium import Tab
from run_records import BEGIN, make_run


def test_runs_appear_change_and_go(studio: Tab, project: Path) -> None:
    origin = studio.evaluate("location.origin")
    studio.call("Page.navigate", url=f"{origin}/")
    studio.wait_for("document.querySelectorAll('[data-line]').length >= 4")
    workspace = Workspace(project / ".allranks")
    run = make_run(id="live", display_name="Live", created=BEGIN + 1000, status=Status.RUNNING, ended=None)
    with Store(workspace.database) as store:
        with locks.hold(workspace.run_folder("live")):
            store.add_run(run, "{}")
            studio.wait_for(_row("Live", "Running"))
            run.status, run.ended, run.results = Status.COMPLETED, run.created + 60, {"accuracy": 0.987}
            store.save_run(run)
            studio.wait_for(_row("Live", "Completed"))
        store.remove_run("live")
        studio.wait_for(f"!({_row('Live', '')})")
    assert studio.evaluate("document.querySelectorAll('[data-line]').length") == 4
    # Only the first request was for all runs.
    asked = studio.evaluate("performance.getEntriesByType('resource').map((each) => each.name)")
    assert sum("/api/runs?" in each and "since=" not in each for each in asked) == 1
    assert studio.errors == []


def _row(name: str, status: str) -> str:
    """Return the condition that a row of the table has these texts."""
    found = f"line.innerText.includes({name!r}) && line.innerText.includes({status!r})"
    return f"[...document.querySelectorAll('[data-line]')].some((line) => {found})"
