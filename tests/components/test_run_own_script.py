"""run_torchrun, run_mpi and run_ray: scripts of somebody's own, started as real processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from component_processes import COMPONENTS, Ended, run
from launches import BIN, MPIRUN, by_mpirun, by_platform, environment, free_port

from allranks.contract.pytorch import PyTorch
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError

Importer = Callable[[str, str], Any]

SCRIPTS = Path(__file__).parent / "own_scripts"
RAY = BIN / "ray"


def command(component: str, folder: Path, script: str = "sum_ranks.py", *arguments: str) -> list[str]:
    places = ["--code", str(SCRIPTS), "--script", script, "--results", str(folder / "results")]
    return [sys.executable, str(COMPONENTS / component / "start.py"), *places, *arguments]


def check(ended: Ended, folder: Path, local_ranks: list[int], arguments: str = "") -> None:
    assert set(ended.codes) == {0}, ended
    world = len(local_ranks)
    total = world * (world + 1) // 2
    assert [file.read_text() for file in sorted((folder / "results").iterdir())] == [
        f"{rank} of {world}, local {local}: {total}{arguments}" for rank, local in enumerate(local_ranks)
    ]


@pytest.mark.slow
def test_torchrun_starts_the_ranks_of_two_instances(tmp_path: Path) -> None:
    variables = environment(tmp_path, ["run_torchrun", "run_mpi"])
    started = command("run_torchrun", tmp_path, "sum_ranks.py", "--processes", "1", "--arguments", "--name 'two words'")
    check(by_platform(PyTorch(1), 2, started, tmp_path, variables), tmp_path, [0, 0], " --name two words")


@pytest.mark.slow
@pytest.mark.skipif(not MPIRUN.exists(), reason="no mpirun here: pip install 'allranks[mpi]'")
def test_mpirun_starts_the_ranks(tmp_path: Path) -> None:
    variables = environment(tmp_path, ["run_mpi"])
    check(by_mpirun(2, command("run_mpi", tmp_path), tmp_path, variables), tmp_path, [0, 1])


@pytest.mark.slow
@pytest.mark.skipif(not RAY.exists(), reason="no Ray here: pip install 'allranks[ray]'")
def test_the_script_runs_when_the_ray_cluster_is_whole(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    variables = environment(tmp_path, ["run_ray", "run_mpi"]) | {"RAY_USAGE_STATS_ENABLED": "0"}
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as short:
        options = ["--head", "--node-ip-address", "127.0.0.1", "--port", address.partition(":")[2], "--num-cpus", "1"]
        options += [
            "--include-dashboard",
            "false",
            "--object-store-memory",
            "100000000",
            "--temp-dir",
            short,
            "--block",
        ]
        with (tmp_path / "head.log").open("wb") as log:
            head = subprocess.Popen([str(RAY), "start", *options], env=variables, stdout=log, stderr=log)
        try:
            started = command("run_ray", tmp_path, "on_ray.py", "--join_seconds", "100")
            ended = run([started], [variables | {"RAY_ADDRESS": address}], tmp_path)
        finally:
            head.terminate()
            head.wait()
    assert ended.codes == [0], (ended, (tmp_path / "head.log").read_text())
    assert (tmp_path / "results").read_text() == "[0, 1, 4, 9]"


def test_what_is_no_script_is_refused(code: Importer, tmp_path: Path) -> None:
    command_line = code("run_mpi", "own_script").command_line
    given = {"code": SCRIPTS, "script": "sum_ranks.py", "arguments": "", "data": None, "results": tmp_path}
    with pytest.raises(
        InputError, match=r"train\.py, which is not in the code\n  expected: one of on_ray\.py, sum_ranks\.py"
    ):
        command_line(Namespace(**given | {"script": "train.py"}))
    with pytest.raises(InputError, match="which is not in the code"):
        command_line(Namespace(**given | {"script": "../conftest.py"}))
    with pytest.raises(InputError, match="No closing quotation"):
        command_line(Namespace(**given | {"arguments": "--name 'two"}))


def test_torchrun_where_the_platform_starts_all_is_refused(code: Importer) -> None:
    code("run_mpi", "own_script")
    env = RankEnv(world_size=4, local_world_size=2, instance_count=2, launcher="pytorch")
    with pytest.raises(InputError, match="2 processes on each instance"):
        code("run_torchrun", "start").torchrun(Namespace(), env)


@pytest.mark.parametrize(
    ("component", "said"), [("run_mpi", "launcher none\n  expected: mpirun"), ("run_ray", "RAY_ADDRESS: is not set")]
)
def test_the_wrong_launch_is_refused(component: str, said: str, tmp_path: Path) -> None:
    ended = run([command(component, tmp_path)], [environment(tmp_path, [component, "run_mpi"])], tmp_path)
    assert ended.codes == [2]
    assert said in ended.errors[0]
    assert "Traceback" not in ended.errors[0]
