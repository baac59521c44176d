"""`allranks logs --engine`, `--verbose` and `allranks logs --pack`: what the engine did, for users and for an issue."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from rich.console import Console

from allranks import engine_log
from allranks.cli.views.live_logs import FollowedLog
from allranks.history.observer import Observer
from allranks.history.records import RunRecord
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
from allranks_command import called
from run_records import make_run, write_engine_log

SECRET = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz12345"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose step has a variable, a secret, and prints data."""
    folder = tmp_path_factory.mktemp("project")
    step = Step("train", "echo the data", environment_variables={"PLAIN": "a value", "API_KEY": SECRET})
    plan = Plan("plan", Graph((step,)))
    record = run(plan, Workspace(folder / ".allranks"), Options(instances="loopback", track=False))
    Path(record.folder, engine_log.FILE).unlink(missing_ok=True)
    write_engine_log(Path(record.folder))
    return folder


def test_the_log_of_the_engine(folder: Path) -> None:
    lines = called("logs", "--engine", folder=folder).out.splitlines()
    assert [line.split() for line in lines] == [
        ["0.000", "engine", "run", "started"],
        ["0.500", "supervisor", "train", "rank", "started"],
        ["2.250", "agent", "0", "train", "rank", "exited", "rank", "2"],
        ["OSError:", "gone"],
    ]


def test_a_run_without_a_log_and_options_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    done = called("logs", "--engine", "--rank", "0", folder=folder)
    assert (done.code, "--engine" in done.err) == (2, True)
    record = run(Plan("plan", Graph((Step("a", "true"),))), Workspace(tmp_path / ".allranks"), Options("loopback"))
    Path(record.folder, engine_log.FILE).unlink(missing_ok=True)
    done = called("logs", "--engine", folder=tmp_path)
    assert (done.code, "it has no log of the engine" in done.err) == (2, True)


def test_a_growing_log_is_printed_beside_the_view(tmp_path: Path) -> None:
    class View(Observer):
        def started(self, run: RunRecord) -> None:
            started.append(run.id)

    started: list[str] = []
    record = make_run()
    record.folder = str(tmp_path)
    file = write_engine_log(tmp_path)
    out = io.StringIO()
    with FollowedLog(View(), Console(file=out, width=200)) as log:
        log.started(record)
        with file.open("a") as more:
            more.write('\n{"monotonic": 10, "event": "run ended", "process": "engine"}\n')
    assert started == [record.id]
    assert "agent 0       train  rank exited  rank 2" in out.getvalue()
    assert out.getvalue().splitlines()[-1].split() == ["3.000", "engine", "run", "ended"]


def test_verbose_logs_everything(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(
        json.dumps({"command": "echo level $ALLRANKS_LOG", "environment": "azureml:cpu:1"}), encoding="utf-8"
    )
    done = called("run", "job.yml", "-v", "--no-track", "--instances", "loopback", folder=tmp_path)
    assert done.code == 0, done.err


def test_what_is_packed_holds_what_is_listed_and_no_secret(folder: Path) -> None:
    refused = called("logs", "--pack", "report.zip", folder=folder)
    assert (refused.code, "agree to it: --yes" in refused.err) == (2, True)
    assert not list(folder.glob("*.zip"))
    done = called("logs", "latest", "--pack", "report.zip", "--yes", folder=folder)
    assert (done.code, done.err) == (0, "")
    with zipfile.ZipFile(folder / "report.zip") as file:
        texts = {name: file.read(name).decode() for name in file.namelist()}
    assert list(texts) == ["engine.log", "plan.json", "run.json", "machine.json", "packages.txt"]
    assert all(f"  {name} " in done.out for name in texts)
    assert '"PLAIN": "..."' in texts["plan.json"]
    assert not [text for text in ("a value", SECRET, "the data\n") for content in texts.values() if text in content]
    assert "rank exited" in texts["engine.log"]
    assert json.loads(texts["run.json"])["status"] == "Completed"
    machine = json.loads(texts["machine.json"])
    assert (machine["instances"], machine["versions"]["allranks"]) == ("loopback", "0.1.0")
    assert "rich==" in texts["packages.txt"]
    again = called("logs", "--pack", "report.zip", "--yes", folder=folder)
    assert (again.code, "it exists, and is not overwritten" in again.err) == (2, True)
    of_step = called("logs", "latest", "train", "--pack", "step.zip", folder=folder)
    assert (of_step.code, "it is given together" in of_step.err) == (2, True)
