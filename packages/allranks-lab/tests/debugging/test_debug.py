"""What cannot be debugged is refused before anything starts."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError
from allranks.history import stored
from allranks.local.options import Options
from allranks.workspace import Workspace
from allranks_command import write_job
from allranks_lab.debugging import debug as debugging
from pipeline_files import write

LAYOUT = {"distribution": {"type": "pytorch", "process_count_per_instance": 2}, "resources": {"instance_count": 2}}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    write(tmp_path, "src/train.py", "def main():\n    # nothing\n    print('hello')\n\nmain()\n")
    return write_job(tmp_path, "python train.py", code="./src", **LAYOUT)


def test_the_workers_of_ray(job: Path, workspace: Workspace) -> None:
    write_job(
        job.parent, "python train.py", code="./src", distribution={"type": "ray"}, resources={"instance_count": 2}
    )
    with pytest.raises(
        InputError, match=r"--rank 1: only Ray's driver can be debugged, not its workers\n  expected: 0"
    ):
        debug(job, workspace, rank="1")


def debug(job: Path, workspace: Workspace, step: str = "", **options: Any) -> list[str]:
    told: list[str] = []
    instances = options.pop("instances", "rack")
    debugging.debug(str(job), step, workspace, Options(instances), inputs={}, tell=told.append, **options)
    return told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": "evaluate"}, "there is no step evaluate\n  expected: one of: job"),
        ({"rank": "4"}, "--rank 4: step job has 4 ranks\n  expected: 0 to 3"),
        ({"rank": "first"}, "--rank first: it is not a rank"),
        ({"rank": "all", "terminal": True}, "--pdb: the ranks share one terminal"),
        ({"instances": "loopback"}, "--instances loopback: debugpy listens on a port of this machine"),
    ],
)
def test_what_is_not_there(job: Path, workspace: Workspace, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        debug(job, workspace, **options)
    assert message in str(raised.value)
    assert not workspace.database.exists()


def test_a_port_that_is_taken(job: Path, workspace: Workspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"--port {port}: port {port} cannot be used: Address already in use"):
            debug(job, workspace, port=port)
    assert not workspace.database.exists()


def test_how_to_attach_to_every_rank(job: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """VS Code finds the user's own files, and attaches to all ranks at once."""
    monkeypatch.setattr(debugging.engine, "run", lambda plan, workspace, options, observer: options.debug._close())
    (told,) = debug(job, workspace, rank="all")
    launch = json.loads(told[told.index("{") :])
    names = [f"job, rank {rank}" for rank in range(4)]
    assert [each["name"] for each in launch["configurations"]] == names
    assert len({each["connect"]["port"] for each in launch["configurations"]}) == 4
    assert launch["configurations"][0]["pathMappings"] == [{"localRoot": str(job.parent / "src"), "remoteRoot": "."}]
    assert launch["compounds"] == [{"name": "job", "configurations": names}]
    assert stored.runs(workspace) == []
