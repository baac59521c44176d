"""`allranks runs`, `show` and `doctor` where they do not need a run to be executed."""

import json
import time
import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from allranks.cli.main import app
from allranks.errors import InputError
from allranks.history.records import RunRecord, Status, Submission
from allranks.history.store import Store
from allranks.workspace import Workspace

NIGHTLY = "nightly-20260704T013000Z"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A run that failed an hour ago and has a page, one that a schedule started, and one on Azure ML."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    place = Workspace(tmp_path / ".allranks")
    page = place.run_folder("ab000001") / "run.html"
    page.parent.mkdir(parents=True)
    page.touch()
    now = time.time()
    runs = [
        RunRecord("ab000001", "digits", "", "", "rack", Status.FAILED, now - 3600, page=str(page)),
        RunRecord(
            "cd000002", "retrain", "", "", "rack", Status.COMPLETED, now - 60, job_name=NIGHTLY, trigger_time=1.0
        ),
    ]
    with Store(place.database) as store:
        for run in runs:
            store.add_run(run, "{}")
    return place


def call(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize(
    ("words", "identities"),
    [
        ([], ["cd000002", "ab000001"]),
        (["--status", "failed"], ["ab000001"]),
        (["--status", "failed", "--status", "Completed"], ["cd000002", "ab000001"]),
        (["--since", "30m"], ["cd000002"]),
        (["--since", "2020-01-01"], ["cd000002", "ab000001"]),
        (["--since", "2999-01-01T00:00"], []),
        (["--limit", "1", "--status", "Failed"], ["ab000001"]),
    ],
)
def test_filters(workspace: Workspace, words: list[str], identities: list[str]) -> None:
    assert [run["id"] for run in json.loads(call("runs", "--json", *words).stdout)] == identities
    lines = call("runs", *words).stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == identities


def test_the_names_of_jobs_are_listed_where_runs_have_one(workspace: Workspace) -> None:
    lines = call("runs").stdout.splitlines()
    assert lines[0].split()[:3] == ["Run", "Name", "Pipeline"]
    assert NIGHTLY in lines[2]
    assert "Name" not in call("runs", "--status", "failed").stdout


def test_columns_for_the_main_metric_and_the_inputs_that_differ(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(workspace.database) as store:
        for number in range(2):
            run = RunRecord(f"ef00000{number}", "tune", "", "", "rack", Status.COMPLETED, time.time())
            run.inputs, run.results = {"lr": f"0.{number}", "seed": "1"}, {"loss": 0.25, "speed": 9.0}
            store.add_run(run, "{}")
    lines = call("runs", "--limit", "2").stdout.splitlines()
    assert lines[0].split()[-2:] == ["loss", "lr"]
    assert [line.split()[-2:] for line in lines[2:4]] == [["0.25", "0.1"], ["0.25", "0.0"]]
    assert lines[4] == "more columns: speed, seed (--columns)"
    monkeypatch.setenv("COLUMNS", "50")
    assert "more columns: loss, lr, speed, …" in call("runs", "--limit", "2").stdout
    chosen = call("runs", "--limit", "1", "--columns", "seed,STATE").stdout.splitlines()
    assert [chosen[0].split(), chosen[2].split()] == [["Run", "seed", "State"], ["ef000001", "1", "✓", "Completed"]]
    wrong = call("runs", "--columns", "lrr")
    assert isinstance(wrong.exception, InputError)
    assert wrong.exception.problems[0].fix == "did you mean lr?"


def test_a_damaged_run_is_listed_as_unreadable_beside_the_others(workspace: Workspace) -> None:
    with Store(workspace.database) as store:
        store.connection.execute("UPDATE run SET record = '{' WHERE id = 'ab000001'")
    done = call("runs")
    assert "ab000001  " in done.stdout
    assert "unreadable" in done.stdout
    assert "cd000002" in done.stdout
    assert done.stderr.count("ab000001") == 1
    assert call("show", "cd00").stdout.startswith("retrain")
    page = call("runs", "--page")
    file = workspace.root / "runs.html"
    assert (page.stdout, file.is_file()) == ("written  .allranks/runs.html\n", True)


def test_nothing_meets_the_conditions(workspace: Workspace) -> None:
    assert call("runs", "--status", "Running").stdout == "No run meets these conditions. List all with: allranks runs\n"


@pytest.mark.parametrize("since", ["yesterday", "7y", ""])
def test_a_time_that_is_none(workspace: Workspace, since: str) -> None:
    done = call("runs", "--since", since)
    assert isinstance(done.exception, InputError)
    assert "2026-07-04" in done.exception.problems[0].expected


def test_the_page_of_a_run_is_opened(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))  # type: ignore[func-returns-value]
    monkeypatch.setenv("DISPLAY", ":0")
    page = workspace.run_folder("ab000001") / "run.html"
    assert call("show", "ab000001", "--open").stdout == f"opened  {page}\n"
    assert opened == [page.as_uri()]


@pytest.mark.parametrize("has_display", [True, False])
def test_without_a_browser_the_path_is_printed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, has_display: bool
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    if has_display:
        monkeypatch.setenv("DISPLAY", ":0")
    # Without a display, a browser in the terminal must not be started either.
    monkeypatch.setattr(webbrowser, "open", lambda _: not has_display)
    assert call("show", "ab000001", "--open").stdout == f"{workspace.run_folder('ab000001') / 'run.html'}\n"


def test_a_run_on_azure_opens_in_the_studio(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))  # type: ignore[func-returns-value]
    monkeypatch.setenv("DISPLAY", ":0")
    studio = "https://ml.azure.com/runs/calm_plum"
    submitted = Submission("s", "g", "w", studio, complete=True)
    with Store(workspace.database) as store:
        store.add_run(RunRecord("calm_plum", "x", "", "", "", Status.COMPLETED, 1.0, submitted=submitted), "{}")
    assert call("show", "calm_plum", "--open", "--json").stdout
    assert opened == [studio]


def test_a_run_without_a_page(workspace: Workspace) -> None:
    done = call("show", NIGHTLY, "--open")
    assert isinstance(done.exception, InputError)
    assert done.exception.problems[0].found == "it has no page yet"


def test_doctor_as_json(workspace: Workspace) -> None:
    found = json.loads(call("doctor", "--json").stdout)
    assert found["instances"] in ("rack", "loopback")
    assert found["gpus"] >= 0
    stacks = {stack["stack"]: stack for stack in found["stacks"]}
    assert stacks["PyTorch"]["version"]
    assert stacks["PyTorch"]["install"].startswith("pip install")
