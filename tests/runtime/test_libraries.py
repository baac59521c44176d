"""What other libraries find in the environment, and any script run with it."""

import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from allranks.contract import report
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError
from allranks.runtime import libraries
from allranks.runtime.libraries import set_variables

remove_left = runpy.run_path(str(Path(__file__).parents[2] / "environments/deepspeed/build_ops.py"))["remove_left"]

MPI = RankEnv(3, 1, 4, 2, 1, 2, "127.0.0.1", 6105, "mpi")


def placed(env: RankEnv, given: Mapping[str, str] | None = None, **options: bool) -> dict[str, str]:
    environ = dict(given or {})
    set_variables(env, environ=environ, **options)
    return environ


def test_a_rank_under_mpi_has_what_torchs_launchers_would_give() -> None:
    found = placed(MPI)
    expected = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "NODE_RANK": "1"}
    expected |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "6105", "GLOO_SOCKET_IFNAME": "lo"}
    assert expected.items() <= found.items()


def test_a_process_that_starts_the_others_is_no_rank() -> None:
    given = {"RANK": "1", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LIGHTNING": "x"}
    found = placed(RankEnv(1, 0, 2, 1, 1, 2, "127.0.0.1", 6105, "pytorch"), given, per_node=True)
    assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"} & found.keys()
    assert (found["NODE_RANK"], found["MASTER_PORT"], found["LIGHTNING"]) == ("1", "6105", "x")


def test_what_it_starts_keeps_the_place_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(libraries.PER_NODE, "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")  # and no RANK: a launch that would be refused
    libraries.prepare_libraries()


@pytest.mark.parametrize(("devices", "on_cpu"), [("", True), ("0", True), ("0,1", False)])
def test_without_a_gpu_for_each_rank_hugging_face_is_told(devices: str, on_cpu: bool) -> None:
    assert ("ACCELERATE_USE_CPU" in placed(MPI, {"CUDA_VISIBLE_DEVICES": devices})) == on_cpu


def test_what_a_user_set_stays() -> None:
    given = {"GLOO_SOCKET_IFNAME": "mine", "ACCELERATE_USE_CPU": "false", "OPAL_PREFIX": "/opt/mpi"}
    assert given.items() <= placed(MPI, given).items()


def test_a_process_without_a_launcher_is_told_no_place() -> None:
    assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "NODE_RANK"} & placed(RankEnv()).keys()


def test_the_interpreters_programs_come_first() -> None:
    (path, rest) = placed(RankEnv(), {"PATH": "/usr/bin"})["PATH"].split(":")
    assert (path, rest) == (str(Path(sys.executable).parent), "/usr/bin")
    assert placed(RankEnv(), {"PATH": f"{path}:/usr/bin"})["PATH"] == f"{path}:/usr/bin"


def test_a_lock_that_a_killed_build_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "deepspeed_shm_comm" / "lock"
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    libraries.await_builds()
    lock.parent.mkdir()
    lock.touch()
    monkeypatch.setattr(libraries, "BUILD_SECONDS", 0.05)
    with pytest.raises(InputError, match=f"fix: rm {lock}"):
        libraries.await_builds()
    assert remove_left() == [lock]
    assert remove_left() == []
    libraries.await_builds()


def test_the_lock_of_a_build_that_goes_on_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "py311_cpu" / "deepspeed_shm_comm" / "lock"
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent))
    (tmp_path.parent / "torch_extensions").symlink_to(tmp_path)
    lock.parent.mkdir(parents=True)
    with lock.open("w"):
        assert remove_left() == []
        assert lock.exists()
    assert len(remove_left()) == 1
    assert not lock.exists()


SCRIPT = """
import os, sys
from helper import word
print(word, sys.argv[1:], __name__, os.environ["NODE_RANK"], os.environ["RANK"], "torch" in sys.modules)
if "fail" in sys.argv:
    raise ValueError("the loss is nan")
"""


@pytest.mark.parametrize(("arguments", "code"), [(["a"], 0), (["fail"], 1)])
def test_any_script(tmp_path: Path, start_environment: dict[str, str], arguments: list[str], code: int) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("word = 'hello'")
    told = tmp_path / "report"
    place = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    place |= {"OMPI_COMM_WORLD_LOCAL_SIZE": "2", report.VARIABLE: str(told)}
    ended = run(str(tmp_path / "script.py"), *arguments, environment={**start_environment, **place})
    assert ended.returncode == code, ended
    assert ended.stdout == f"hello {arguments} __main__ 0 1 False\n"
    (event,) = report.read(told)[0]
    if code:
        assert isinstance(event, report.Failure)
        assert event.message == "the loss is nan"
    else:
        assert isinstance(event, report.Finished)


@pytest.mark.parametrize("arguments", [[], ["nothing.py"]])
def test_no_script(start_environment: dict[str, str], arguments: list[str]) -> None:
    ended = run(*arguments, environment=start_environment)
    assert ended.returncode == 2
    assert "python -m allranks.runtime SCRIPT" in ended.stderr
    assert "Traceback" not in ended.stderr


def run(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "allranks.runtime", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
