"""The ledger keeps a schedule's plan without its secrets, and a firing runs with them."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

from allranks.history.records import RunRecord, Status
from allranks.plan import codec
from allranks.scheduler import running
from allranks.scheduler.ledger import Firing, Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.scheduler.reading import read
from allranks.workspace import Workspace

DECLARED = """
from azure.ai.ml import command, dsl
from azure.ai.ml.entities import CronTrigger, JobSchedule

work = command(name="work", command="true", environment="azureml:cpu:1", environment_variables={"HF_TOKEN": "hunter2"})


@dsl.pipeline
def working():
    work()


def nightly() -> JobSchedule:
    return JobSchedule(name="nightly", trigger=CronTrigger(expression="30 2 * * *"), create_job=working())
"""


def fire(place: SchedulerPaths, day: int) -> tuple[list[str], str]:
    """Carry out a firing. Return the plans that ran, and the reason where it failed."""
    plans: list[str] = []

    def run(workspace: Workspace, options: object, plan: str, firing: Firing) -> RunRecord:
        plans.append(plan)
        return RunRecord("a", "nightly", "nightly", "", "loopback", Status.COMPLETED)

    with Ledger(place.ledger) as ledger:
        firing = ledger.claim("nightly", datetime(2026, 1, day, tzinfo=UTC))
    assert firing is not None
    with mock.patch.object(running, "run_engine", run):
        running.carry_out(place, firing.run, {})
    with Ledger(place.ledger) as ledger:
        return plans, ledger.firing(firing.run).reason or ""


def test_a_firing_has_the_secrets_that_the_ledger_lacks(tmp_path: Path) -> None:
    (tmp_path / "nightly.py").write_text(DECLARED)
    place = SchedulerPaths(Workspace(tmp_path / ".allranks"))
    place.make()
    read(place, tmp_path / "nightly.py")
    holders = [path for path in place.workspace.root.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert [path.name for path in holders] == ["secrets.json"]
    assert {path.stat().st_mode & 0o777 for path in (*holders, place.ledger)} == {0o600}

    (plan,), reason = fire(place, 1)
    assert reason == ""
    assert codec.loads(plan).graph.nodes[0].environment_variables == {"HF_TOKEN": "hunter2"}

    shutil.rmtree(place.folder / "secrets")
    plans, reason = fire(place, 2)
    assert plans == []
    assert "are gone: HF_TOKEN" in reason
