"""A job of real ranks on instances of a rack, of which one can be made to differ from the others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.history.records import RunRecord
from allranks.history.workspace import Workspace
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step

SCRIPT = """
from allranks import runtime


def train(ranks):
    print("trained", flush=True)


runtime.main(train)
"""


@pytest.fixture
def job(tmp_path: Path, rack_works: bool) -> Callable[..., RunRecord]:
    """job(before, instances, processes): runs a training whose ranks do `before`, in a shell, before they start.

    The shell has the variable NODE_RANK, python for this Python, and the right to change the network of its instance.
    shm_size: bytes of /dev/shm on every instance
    """
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    workspace = Workspace(tmp_path / "workspace")
    script = tmp_path / "workspace" / "train.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)

    def run_it(
        before: str = "",
        instances: int = 2,
        processes: int = 1,
        python: str = "$python",
        shm_size: int = 2 << 30,
        **variables: str,
    ) -> RunRecord:
        # Where an ordinary user's shell does not look: tc.
        paths = "PATH=$PATH:/usr/sbin:/sbin"
        command = f"cd {script.parent}; python={sys.executable}; {paths}; {before}\n{python} train.py"
        step = Step(
            "train",
            command,
            distribution=PyTorch(processes),
            instance_count=instances,
            shm_size=shm_size,
            environment_variables={"OMP_NUM_THREADS": "1", **variables},
        )
        return run(Plan("preflight", Graph((step,))), workspace, Options(instances="rack", slots=8, track=False))

    return run_it


def logs(record: RunRecord) -> list[str]:
    """What each rank printed, in the order of the ranks."""
    return [Path(rank.log).read_text() for rank in record.steps[0].ranks]
