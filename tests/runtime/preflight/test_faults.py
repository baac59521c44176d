"""Each fault that a cluster brings, made for real on one instance of the rack: it is found before the first step, and
instance and rank are named."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.history.records import RunRecord, Status
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace

# Each starts a job of several ranks, which import torch.
pytestmark = pytest.mark.slow

Job = Callable[..., RunRecord]

SCRIPT = """
from allranks import runtime


def train(ranks):
    print("trained", flush=True)


runtime.main(train)
"""


@pytest.fixture
def job(tmp_path: Path, rack_works: bool) -> Job:
    """job(before, instances, python): runs a training whose ranks do `before`, in a shell, before they start.

    The shell has the variable NODE_RANK, python for this Python, and the right to change the network of its instance.
    """
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)

    def run_it(before: str, instances: int = 2, python: str = "$python") -> RunRecord:
        # Where an ordinary user's shell does not look: tc.
        paths = "PATH=$PATH:/usr/sbin:/sbin"
        command = f"cd {folder}; python={sys.executable}; {paths}; {before}\n{python} train.py"
        one_thread = {"OMP_NUM_THREADS": "1"}
        step = Step(
            "train", command, distribution=PyTorch(1), instance_count=instances, environment_variables=one_thread
        )
        options = Options(instances="rack", slots=8, track=False)
        return run(Plan("preflight", Graph((step,))), Workspace(folder), options)

    return run_it


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>

static int (*real)(clockid_t, struct timespec *);

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += 90;
    return code;
}
"""
"""Stands before libc's clock in a process: its time of day is 90 s ahead, its monotonic clock is left."""


def on(instance: int, command: str) -> str:
    return f"[ $NODE_RANK = {instance} ] && {{ {command}; }}"


def blamed(record: RunRecord, instance: int, rank: int) -> str:
    """Why the job failed, once it is sure that nobody trained and that this rank is the one that is named."""
    assert record.status is Status.FAILED
    (step,) = record.steps
    texts = [Path(each.log).read_text() for each in step.ranks]
    assert not any("trained" in text for text in texts)
    assert step.verdict is not None
    assert (step.verdict.instance_rank, step.verdict.rank) == (instance, rank), step.verdict
    assert f"instance {instance}, rank {rank}" in step.verdict.reason
    assert "Traceback" not in "".join(texts)
    return step.verdict.reason


def warned(record: RunRecord) -> str:
    """Assert that the training ran, and return what rank 0 printed before."""
    texts = [Path(rank.log).read_text() for rank in record.steps[0].ranks]
    assert record.status is Status.COMPLETED, texts
    assert all("trained" in text for text in texts)
    assert "preflight: 2 ranks on 2 instances" in texts[0]
    assert "preflight" not in texts[1]
    return texts[0]


@pytest.mark.recipe  # it waits for connections that nobody answers
def test_a_firewalled_port(job: Job) -> None:
    """Instance 0 does not send what leaves from the master's port to instance 1: its knocks stay unanswered."""
    reason = blamed(job(on(0, "ip rule add to 10.77.0.11 ipproto tcp sport 6105 blackhole")), 1, 1)
    assert "the master at 10.77.0.10:6105 does not answer" in reason


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler to put a wrong clock before libc's")
def test_one_instance_90_s_off_and_with_another_torch(job: Job, tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    (folder / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "clock.so", folder / "clock.c", "-ldl"], check=True)
    other = "import torch, runpy; torch.__version__ = '2.9.9'; runpy.run_path('train.py', run_name='__main__')"
    script = f'python() {{ $python -c "{other}"; }}; export LD_PRELOAD=$PWD/clock.so'
    text = warned(job(f"run=$python; {on(1, f'{script}; run=python')}", python="$run"))
    assert "clocks      warning  instance 1, rank 1: the clock of node-1 is 9" in text
    assert "s ahead of the others'" in text
    assert "versions    warning  instance 1, rank 1: torch 2.9.9 on node-1" in text


@pytest.mark.recipe
def test_a_slow_link(job: Job) -> None:
    slow = "tc qdisc add dev eth0 root tbf rate 8mbit burst 32kbit latency 400ms"
    reason = blamed(job(on(1, slow), instances=3), 1, 1)
    assert "preflight network" in reason
    assert "Mbit/s between instance 1 and instance" in reason
