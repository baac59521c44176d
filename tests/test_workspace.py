"""The workspace folder: where it is, who holds it, and what a full disk does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

import bounded
from allranks.errors import InputError
from allranks.history import locks, stored
from allranks.history.records import Status
from allranks.local.engine import resume
from allranks.local.options import Options
from allranks.plan.graph import Step
from allranks.plan.ports import Output
from allranks.workspace import Workspace


@pytest.mark.parametrize("name", ["plain", "a b", "100%ba", "what?x", "größe#1"])
def test_the_uri_of_its_database_names_its_folder(name: str) -> None:
    root = Path("/tmp", name)
    assert make_url(Workspace(root).tracking_uri).database == str(root / "mlflow.db")


def test_it_is_found_in_a_folder_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert Workspace.at() == Workspace(below / ".allranks")
    (tmp_path / ".allranks").mkdir()
    assert Workspace.at() == Workspace(tmp_path / ".allranks")
    assert Workspace.at("other") == Workspace(below / "other")


@pytest.mark.parametrize("mode", [None, 0o755, 0o777])
def test_only_its_user_may_enter_it(workspace: Workspace, mode: int | None) -> None:
    if mode is not None:
        workspace.root.mkdir()
        workspace.root.chmod(mode)
    workspace.make()
    assert workspace.root.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_all_users_share_is_refused(workspace: Workspace) -> None:
    workspace.root.mkdir()
    workspace.root.chmod(0o1777)
    with pytest.raises(
        InputError, match=r"all users share it\n  expected: a folder of this user\n  fix: use a folder in it: --folder"
    ):
        workspace.make()
    assert workspace.root.stat().st_mode & 0o7777 == 0o1777


def test_reading_makes_nothing(workspace: Workspace) -> None:
    assert stored.runs(workspace) == []
    with pytest.raises(InputError, match="no workspace"):
        stored.run(workspace, "latest")
    assert not workspace.root.exists()


def test_another_engine_is_kept_out_and_told_who_holds_it(workspace: Workspace, run_steps) -> None:
    """From the run that an engine executes, and from no other."""
    record = run_steps(Step("a", "false"))
    folder = workspace.run_folder(record.id)
    hold = (
        "import sys; from pathlib import Path; from allranks.history import locks\n"
        "with locks.hold(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    with bounded.Popen(
        [sys.executable, "-c", hold, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        found = locks.holder(folder)
        assert found is not None
        assert found.pid == holder.pid
        assert not locks.wait(folder, 0)
        with pytest.raises(InputError, match=f"process {holder.pid}"):
            resume(record.id, workspace, Options(instances="loopback"))
        assert [run.id for run in stored.runs(workspace)] == [record.id]
        assert run_steps(Step("b", "true")).status is Status.COMPLETED
        holder.kill()
    assert locks.wait(folder, 0)
    assert locks.holder(folder) is None
    assert resume(record.id, workspace, Options(instances="loopback")).status is Status.FAILED


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="it cannot become a workspace"):
        Workspace(tmp_path / "w").make()


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w").write_text("")
    with pytest.raises(InputError, match="it cannot become a workspace"):
        Workspace(tmp_path / "w").make()


def test_a_file_that_is_no_store_is_refused_and_left_alone(workspace: Workspace, run_steps) -> None:
    workspace.make()
    workspace.database.write_text("something else\n" * 100)
    with pytest.raises(InputError, match="not a store"):
        run_steps(Step("a", "true"))
    assert workspace.database.read_text().startswith("something else")


FULL = """
import subprocess, sys
from pathlib import Path
from allranks.errors import InputError
from allranks.local.engine import DiskFullError, resume, run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output
from allranks.history import stored
from allranks.history.cleaning import clean, plan_cleaning
from allranks.history.log_reader import print_logs
from allranks.workspace import Workspace
workspace, options = Workspace(Path(sys.argv[1])), Options(instances="loopback")
out = (Output("out", "uri_folder", "rw_mount"),)
fill = Step("fill", "dd if=/dev/zero of=${{outputs.out}}/big bs=64k count=1000 2>/dev/null; true", outputs=out)
after = tuple(Step(f"s{number}", "echo a line of some length", after=("fill",)) for number in range(20))
try:
    print(run(Plan("p", Graph((fill, *after))), workspace, options).status)
except DiskFullError as error:
    print(error)
(full,) = stored.runs(workspace)
print(full.status)
try:
    print(resume(full.id, workspace, options).status)
except DiskFullError as error:
    print(error)
print(len(clean(workspace, plan_cleaning(workspace, before=1e12))), "removed")
print(run(Plan("p", Graph((Step("a", "echo text"),))), workspace, options).status)
for options_of_mount in ("--bind", "-oremount,bind,ro"):
    subprocess.run(["mount", options_of_mount, workspace.root.parent, workspace.root.parent], check=True)
(last,) = stored.runs(workspace)
print(last.status, stored.run(workspace, "latest").id == last.id)
print_logs(last, None, None)
try:
    run(Plan("p", Graph((Step("a", "echo text"),))), workspace, options)
except InputError as error:
    print(error.problems[0].code)
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_one_message(rack_works: bool, tmp_path: Path) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    mount = 'mount -t tmpfs -o size=2m none "$0" && exec "$@"'
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            mount,
            tmp_path,
            sys.executable,
            "-c",
            FULL,
            tmp_path / "w",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert f"no space left on the disk of {tmp_path / 'w'}" in lines[0]
    assert " is in fill: " in lines[0]
    assert lines[1] == "Interrupted"
    assert f"no space left on the disk of {tmp_path / 'w'}" in lines[2]
    assert lines[3:] == ["1 removed", "Completed", "Completed True", "text", "workspace-access"]


def test_a_moved_workspace_continues(workspace: Workspace, run_steps) -> None:
    steps = (
        Step("make", "echo made > ${{outputs.out}}/x", outputs=(Output("out", "uri_folder"),)),
        Step("fail", "echo tried; exit 1", after=("make",)),
    )
    record = run_steps(*steps)
    moved = Workspace(workspace.root.parent / "moved")
    workspace.root.rename(moved.root)
    found = stored.run(moved, record.id)
    (output,) = found.step("make").outputs
    assert Path(output.path, "x").read_text() == "made\n"
    assert Path(found.step("fail").ranks[0].log).read_text() == "tried\n"
    for text in (moved.database.read_bytes(), json.dumps(found.inputs).encode()):
        assert os.fsencode(workspace.root) not in text
    again = resume(record.id, moved, Options(instances="loopback"))
    assert (again.step("make").attempt, again.step("fail").attempt) == (0, 1)
    assert again.step("fail").ranks[0].log.startswith(str(moved.root))
    assert not workspace.root.exists()


@pytest.mark.parametrize("name", ["link", "real/../real", "link/../real"])
def test_a_workspace_by_a_link_is_the_folder_itself(name: str, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert Workspace.at(f"{tmp_path}/{name}") == Workspace(tmp_path / "real")
