"""An instance that never starts, or whose agent is stopped, ends the step with its name."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from stopped_instance import EARLIER, StoppedInstance, earlier_step

from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.plan.graph import Graph, Plan, Step

PATH = f"{Path(sys.executable).parent}:/usr/bin"

LAUNCHES: dict[str, tuple[Distribution, str, str]] = {
    "pytorch": (PyTorch(2), "sleep 600", "sh"),
    "mpi": (Mpi(2), "sleep 600", "mpirun"),
    "ray": (Ray(), "sleep 600", "ray"),
}
"""The distribution, the command, and a program that it needs."""


@pytest.fixture(autouse=True)
def _nothing_remains() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    assert not set(psutil.Process().children(recursive=True)) - before


def plan(distribution: Distribution, command: str) -> Plan:
    step = Step("train", command, distribution=distribution, instance_count=3, after=(EARLIER,))
    return Plan("p", Graph((earlier_step(3), step)))


@pytest.mark.slow
@pytest.mark.parametrize(("launch", "kind"), [("mpi", "rack"), ("ray", "rack"), ("pytorch", "loopback")])
def test_an_instance_that_never_starts_ends_the_step(
    launch: str, kind: str, rack_works: bool, run_steps: Callable[..., RunRecord]
) -> None:
    if kind == "rack" and not rack_works:
        pytest.skip("this machine has no user namespaces")
    distribution, command, program = LAUNCHES[launch]
    if shutil.which(program, path=PATH) is None:
        pytest.skip(f"no {program}")
    observer = StoppedInstance()
    trial = plan(distribution, command)
    # The earlier step has to start within the same seconds, on a machine that other tests keep busy.
    record = run_steps(plan=trial, observer=observer, instances=kind, cold=True, start_timeout=6.0)
    assert record.step(EARLIER).status is Status.COMPLETED
    verdict = record.step("train").verdict
    assert verdict is not None
    name = {"rack": "node-2", "loopback": "127.0.0.3"}[kind]
    assert verdict.reason == f"instance 2 ({name}) did not start within 6 s"
    assert record.status is Status.FAILED
    assert not observer.stopped.is_running()


class WhenOthersRun(Observer):
    """Stop an instance, and call a function with its agent when the ranks of the other two have started."""

    def __init__(self, then: Callable[[psutil.Process], object]) -> None:
        self.instance = StoppedInstance()
        self.then = then
        self.called = False

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        self.instance.changed(run, step)
        running = [rank for rank in step.ranks if rank.status is Status.RUNNING]
        if step.name == "train" and len(running) == 2 and not self.called:
            self.called = True
            self.then(self.instance.stopped)


def test_a_run_with_a_stopped_instance_can_be_stopped(run_steps: Callable[..., RunRecord]) -> None:
    observer = WhenOthersRun(lambda _: os.kill(os.getpid(), signal.SIGINT))
    trial = plan(PyTorch(1), "sleep 600")
    record = run_steps(plan=trial, observer=observer, cold=True, grace=0.2)
    assert [step.status for step in record.steps] == [Status.COMPLETED, Status.CANCELED]
    assert not observer.instance.stopped.is_running()


def test_an_instance_that_is_killed_before_it_starts(run_steps: Callable[..., RunRecord]) -> None:
    observer = WhenOthersRun(lambda agent: agent.kill())
    record = run_steps(plan=plan(PyTorch(1), "sleep 600"), observer=observer, cold=True)
    verdict = record.step("train").verdict
    assert verdict is not None
    assert verdict.reason == "instance 2 (127.0.0.3): its agent was killed from outside the run"
