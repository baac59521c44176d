"""One row of the tables, and how its folder is made."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output
from allranks.workspace import FOLDER, Workspace

Make = Callable[[Path], object]


@dataclass(frozen=True)
class Row:
    """A command that is given something wrong.

    command:   its arguments, separated by spaces
    said:      what its message must contain; where its lines break does not matter
    code:      its exit code
    files:     files by name; bytes for those that are not text
    make:      makes whatever else is in the folder
    runs:      whether the folder has a workspace with two runs, one that completed and one that failed
    variables: environment variables
    closed:    the standard streams that are closed
    other:     whether another user than the folder's owner runs the command, which only root can arrange
    prints:    whether it prints something to standard output before the message
    """

    command: str
    said: tuple[str, ...]
    code: int = 2
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    make: Make | None = None
    runs: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    closed: tuple[int, ...] = ()
    other: bool = False
    prints: bool = False

    @property
    def arguments(self) -> list[str]:
        """A word that has to contain a space has a no-break space in the table."""
        return [word.replace("\u00a0", " ") if word != "''" else "" for word in self.command.split(" ")]


def prepare(row: Row, folder: Path, workspace: Path) -> None:
    """Makes the row's folder. workspace: the one to copy"""
    folder.mkdir()
    if row.runs:
        shutil.copytree(workspace, folder / FOLDER)
    for name, text in row.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text, encoding="utf-8")
    if row.make is not None:
        row.make(folder)
    if row.other:
        folder.chmod(0o777)


def make_workspace(root: Path) -> None:
    """A workspace with two runs."""
    said = Step("say", "echo said > ${{outputs.said}}", outputs=(Output("said", "uri_file", "rw_mount"),))
    for name, step in (("good", said), ("bad", Step("fail", "exit 3"))):
        run(Plan(name, Graph((step,))), Workspace(root), Options(instances="loopback", track=False))


def job(**keys: object) -> str:
    """A command job. JSON is YAML."""
    return json.dumps({"command": "echo", "environment": "azureml:cpu:1"} | keys)


def pipeline(**jobs: object) -> str:
    """A pipeline in YAML."""
    return json.dumps({"type": "pipeline", "jobs": jobs})


def step(**keys: object) -> dict[str, object]:
    """A step of a pipeline."""
    return {"type": "command", "command": "echo", "environment": "azureml:cpu:1"} | keys
