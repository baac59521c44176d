"""What the shell proposes while a command is typed, as bash asks for it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.cli.main import app
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.workspace import Workspace
from allranks_command import content, environment, write

NIGHTLY = "nightly-20260704T013000Z"

PIPELINES = """\
    @dsl.pipeline
    def first(epochs=5, *, data: Input(type="uri_folder")): ...

    @pipeline(name="retrain")
    def retrain(rate: float = 0.1): ...

    def other(no=1): ...
    """

Complete = Callable[..., list[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs."""
    place = Workspace(tmp_path / ".allranks")
    place.make()
    first = RunRecord("ab000001", "digits", "", "", "rack", Status.COMPLETED, 1.0, job_name="ab000001")
    second = RunRecord("cd000002", "retrain", "", "", "rack", Status.COMPLETED, 2.0, job_name=NIGHTLY)
    second.steps = [StepRecord(name, "", "", "none", 1, 1) for name in ("prepare", "loop", "loop[1].train")]
    first.inputs = {"epochs": "3"}
    write(tmp_path, "nightly.py", PIPELINES)
    write(tmp_path, "job.yml", "inputs: {epochs: 5, data: {type: uri_folder}}")
    write(tmp_path, "broken.py", "def")
    with Store(place.database) as store:
        store.add_run(first, "{}")
        store.add_run(second, "{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def complete(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """Return what is proposed for the last of the words, in this process, whose other tests run commands."""
    monkeypatch.setattr("allranks.cli.lazy_group._COMPLETION_DEFERS", ())

    def proposals(*words: str) -> list[str]:
        monkeypatch.setenv("_ALLRANKS_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("allranks", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            app(prog_name="allranks")
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out.split()

    return proposals


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        (["ru"], ["run", "runs"]),
        (["schedules", "en"], ["enable"]),
        (["show", "--js"], ["--json"]),
        (["runs", "--status", "Co"], ["Completed"]),
        (["show", ""], ["latest", "cd000002", "ab000001", NIGHTLY]),
        (["logs", "ab"], ["ab000001"]),
        (["resume", "nightly"], [NIGHTLY]),
        (["logs", "latest", ""], ["prepare", "loop", "loop[1].train"]),
        (["cancel", "cd", "prepare", "loop["], ["loop[1].train"]),
        (["logs", "ab000001", ""], []),
        (["show", "zz"], []),
        (["run", "nightly.py", "--set", ""], ["epochs=5", "data=", "rate=0.1"]),
        (["run", "nightly.py:retrain", "--set", "r"], ["rate=0.1"]),
        (["check", "job.yml", "--set", ""], ["epochs=5", "data="]),
        (["run", "prepare_images", "--set", "see"], ["seed=0"]),
        (["rerun", "ab000001", "--set", ""], ["epochs=3"]),
        (["run", "broken.py", "--set", ""], []),
        (["run", "register_m"], ["register_model"]),
        (["run", "nigh"], []),
        (["launch", "--size", "ND96asr"], ["ND96asr_v4"]),
        (["submit", "nightly.py", "--size", "train=Standard_ND96asr"], ["train=Standard_ND96asr_v4"]),
        (["why", "missing-pa"], ["missing-package"]),
        (["why", "cd"], ["cd000002"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_shell_proposes(complete: Complete, folder: Path, words: list[str], proposed: list[str]) -> None:
    before = content(folder)
    assert complete(*words) == proposed
    assert content(folder) == before


def test_another_workspace_is_read_where_the_line_names_it(complete: Complete, folder: Path) -> None:
    (folder / ".allranks").rename(folder / "elsewhere")
    assert complete("show", "ab") == []
    assert complete("show", "--folder", "elsewhere", "ab") == ["ab000001"]


@pytest.mark.parametrize("damage", [b"", b"no database", None], ids=["empty", "text", "gone"])
def test_nothing_is_said_of_what_is_wrong(complete: Complete, folder: Path, damage: bytes | None) -> None:
    database = folder / ".allranks" / "allranks.db"
    database.unlink() if damage is None else database.write_bytes(damage)
    assert complete("show", "ab") == []
    assert complete("logs", "latest", "") == []


def test_completion_imports_neither_rich_nor_the_sdk(folder: Path) -> None:
    program = "\n".join(
        [
            "import sys; sys.argv = ['allranks']; from allranks.cli import main",
            "try: main.main()",
            "finally: print(*sys.modules, file=sys.stderr)",
        ]
    )
    words = {"_ALLRANKS_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "allranks logs latest "}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(**words), cwd=folder, capture_output=True, text=True
    )
    assert "prepare" in done.stdout
    imported = {name.partition(".")[0] for name in done.stderr.split()}
    assert not imported & {"rich", "azure", "torch", "mlflow", "yaml", "cattrs", "pydantic"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_for_the_shells_are_printed(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: shell)
    with pytest.raises(SystemExit) as ended:
        app(["--show-completion"], prog_name="allranks")
    assert not ended.value.code
    assert "_ALLRANKS_COMPLETE=complete_" + shell in capsys.readouterr().out


def test_a_short_option_gives_the_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["-h"],
        ["show", "-h"],
        ["schedules", "-h"],
        ["schedules", "apply", "-h"],
        ["environments", "build", "-h"],
    ):
        with pytest.raises(SystemExit) as ended:
            app(words, prog_name="allranks")
        assert not ended.value.code
        assert f"Usage: allranks {' '.join(words[:-1])}".rstrip() in capsys.readouterr().out
