"""Folders that are made before a step needs them: a step cannot tell, and never finds anything of another step."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from allranks.local.attempt.place import NextFolders
from allranks.plan.graph import Graph, Plan, Step
from allranks.runs.records import RunRecord, Status
from allranks.runs.workspace import Workspace


@pytest.fixture
def next_folders(tmp_path: Path) -> NextFolders:
    parent = tmp_path / "parent"
    parent.mkdir()
    return NextFolders(lambda: parent)


def test_a_step_gets_the_folders_that_were_made_beforehand(tmp_path: Path, next_folders: NextFolders) -> None:
    folder = tmp_path / "run" / "step"
    assert not next_folders.place(folder), "none is ready"
    next_folders.make_next()
    assert next_folders.place(folder)
    assert sorted(os.listdir(folder)) == ["instances", "outputs", "reports", "user_logs"]
    (folder / "instances" / "0" / "code" / "outputs" / "file").touch()
    assert os.listdir(folder / "outputs") == ["file"]
    next_folders.make_next()
    assert not next_folders.place(folder), "it has folders already"


def test_threads_do_not_place_the_same_folders(tmp_path: Path, next_folders: NextFolders) -> None:
    steps = 8
    with ThreadPoolExecutor(steps) as threads:
        for round_ in range(100):
            next_folders.make_next()
            placed = list(threads.map(next_folders.place, [tmp_path / f"{round_}-{step}" for step in range(steps)]))
            assert placed.count(True) == 1


def test_a_file_is_made_where_there_is_none(tmp_path: Path, next_folders: NextFolders) -> None:
    next_folders.make_file(tmp_path / "not ready")
    next_folders.make_next()
    (tmp_path / "existing").write_text("kept")
    for name in ("existing", "ready", "none left"):
        next_folders.make_file(tmp_path / name)
    assert (tmp_path / "existing").read_text() == "kept"
    assert [(tmp_path / name).read_text() for name in ("not ready", "ready", "none left")] == ["", "", ""]
    with pytest.raises(FileNotFoundError):
        next_folders.make_file(tmp_path / "no folder" / "file")


LEFT: dict[str, Callable[[Path], object]] = {
    "file": lambda code: (code / "file").touch(),
    "file beside the code": lambda code: (code.parent / "file").touch(),
    "mode": lambda code: code.chmod(0o700),
    "link": lambda code: ((code / "outputs").unlink(), (code / "outputs").symlink_to("/")),
    "nothing": lambda code: (code / "outputs").unlink(),
}


@pytest.mark.parametrize("left", LEFT)
def test_what_a_step_has_changed_serves_no_other_step(tmp_path: Path, next_folders: NextFolders, left: str) -> None:
    next_folders.make_next()
    next_folders.place(tmp_path / "step")
    LEFT[left](tmp_path / "step" / "instances" / "0" / "code")
    assert not next_folders.take_back(tmp_path / "step")


def test_unchanged_instances_serve_another_step(tmp_path: Path, next_folders: NextFolders) -> None:
    next_folders.make_next()
    next_folders.place(tmp_path / "one")
    inode = (tmp_path / "one" / "instances").stat().st_ino
    assert next_folders.take_back(tmp_path / "one")
    next_folders.make_next()
    next_folders.place(tmp_path / "two")
    assert (tmp_path / "two" / "instances").stat().st_ino == inode
    assert not (tmp_path / "one" / "instances").exists()


def _chain(commands: list[str]) -> Plan:
    return Plan(
        "chain",
        Graph(tuple(Step(f"s{n}", command, after=(f"s{n - 1}",) if n else ()) for n, command in enumerate(commands))),
    )


LOOK = "ls -A . ${TMPDIR:-/tmp} outputs/ > ../../../seen; ls -Ald . outputs | cut -d ' ' -f 1 >> ../../../seen"


@pytest.mark.parametrize("kind", ["loopback", "rack"])
def test_no_step_finds_what_another_step_left(
    run_steps: Callable[..., RunRecord], workspace: Workspace, rack_works: bool, kind: str
) -> None:
    if kind == "rack" and not rack_works:
        pytest.skip("this machine has no user namespaces")
    leaves = "touch here outputs/artifact ${TMPDIR:-/tmp}/left; chmod 700 .; mkdir -p ${TMPDIR:-/tmp}/folder"
    commands = ["true", "true", leaves, "true", "pwd > outputs/where", "true"]
    record = run_steps(plan=_chain(commands), instances=kind)
    assert record.status is Status.COMPLETED
    seen = run_steps(plan=_chain([f"{command}; {LOOK}" for command in commands]), instances=kind)
    texts = [(Path(step.folder) / "seen").read_text() for step in seen.steps]
    assert texts[0] == texts[1] == texts[3] == texts[5]
    assert "left" in texts[2]
    assert [step.artifacts for step in record.steps] == [[], [], ["outputs/artifact"], [], ["outputs/where"], []]
    where = (Path(record.steps[4].folder) / "outputs" / "where").read_text().strip()
    assert where == f"{record.steps[4].folder}/instances/0/code"
    for step in record.steps:
        assert sorted(os.listdir(step.folder)) == ["outputs", "reports", "user_logs"]
    assert os.listdir(workspace.temporary) == [] if kind == "rack" else True
