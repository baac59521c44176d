"""A project in a studio, in Chromium."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from serving import serving

from allranks.history.records import RunRecord, Status, Verdict
from allranks.history.store import Store
from allranks.project import files
from allranks.scheduler.ledger import CREATED, Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules.finding import Schedule
from allranks.schedules.triggers import Cron
from allranks.workspace import Workspace
from chromium import PROGRAM, Tab, chromium
from run_records import make_ranks, make_run, make_step, make_sweep, trained_run

PAGES = Path(__file__).parents[2] / "src/allranks_studio/static/index.html"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave these tests out where there is no Chromium, or where npm has not built the pages."""
    missing = "no Chromium" if PROGRAM is None else "" if PAGES.exists() else "no pages of the studio: make studio"
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.xdist_group("studio"))
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"this machine has {missing}"))


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of the template, with runs that completed, a sweep, a run that failed, and a schedule that fired."""
    folder = tmp_path_factory.mktemp("studio") / "project"
    files.create(folder, files.template())
    workspace = Workspace(folder / ".allranks")
    workspace.make()
    with Store(workspace.database) as store:
        for run in (trained_run(1), trained_run(2), _swept(), _failed(workspace)):
            store.add_run(run, "{}")
            for step in run.steps:
                points = [(name, point) for name, curve in step.metrics.items() for point in curve]
                store.add_points(run.id, step.name, points)
    with Ledger(SchedulerPaths(workspace).ledger) as ledger:
        now = datetime.now(UTC)
        ledger.put(Schedule("nightly", "nightly", "", Cron("0 2 * * *"), CREATED), "{}", "", now, enabled=True)
        ledger.add("nightly", now)
    return folder


@pytest.fixture(scope="session")
def studio(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab with the project's studio."""
    with serving(project) as client, chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser.open(f"{client.origin}/?token={client.session.token}", 1440, 900)


def _swept() -> RunRecord:
    return make_run(*make_sweep((0.5, 0.7, None)), id="sweep", display_name="Tune")


def _failed(workspace: Workspace) -> RunRecord:
    log = workspace.run_folder("failed") / "train/user_logs/std_log_process_0.txt"
    log.parent.mkdir(parents=True)
    log.write_text("loading\nValueError: <b>bad</b>\n" * 50)
    ranks = make_ranks(2, 2)
    ranks[0].log = str(log)
    verdict = Verdict("train", "ValueError: <b>bad</b>", 0, 0, 1, log=str(log), tail=("loading", "ValueError"))
    train = make_step("train", ("prepare",), status=Status.FAILED, ranks=ranks, verdict=verdict)
    return make_run(make_step("prepare"), train, id="failed", status=Status.FAILED, source="pipelines/two_spirals.py")
