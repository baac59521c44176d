"""An instance that never starts, or whose agent is stopped, ends the step with its name."""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.local.attempt import attempt
from allranks.local.instances.supervisor import InstanceSpec
from allranks.plan.graph import Step

PATH = f"{Path(sys.executable).parent}:/usr/bin"

LAUNCHES: dict[str, tuple[Distribution, str]] = {
    "pytorch": (PyTorch(2), "sh"),
    "mpi": (Mpi(2), "mpirun"),
}
"""The distribution, and a program that it needs."""


@pytest.fixture(autouse=True)
def _last_instance_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent of the last instance starts no program."""
    specs_of = attempt.instance_specs

    def specs(*arguments: Any) -> Sequence[InstanceSpec]:
        *others, last = specs_of(*arguments)
        return [*others, replace(last, delay=600.0)]

    monkeypatch.setattr(attempt, "instance_specs", specs)


@pytest.fixture(autouse=True)
def _nothing_remains() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    assert not set(psutil.Process().children(recursive=True)) - before


def step(distribution: Distribution) -> Step:
    return Step("train", "sleep 600", distribution=distribution, instance_count=3)


@pytest.mark.slow
@pytest.mark.parametrize(("launch", "kind"), [("mpi", "rack"), ("pytorch", "loopback")])
def test_an_instance_that_never_starts_ends_the_step(
    launch: str, kind: str, rack_works: bool, run_steps: Callable[..., RunRecord]
) -> None:
    if kind == "rack" and not rack_works:
        pytest.skip("this machine has no user namespaces")
    distribution, program = LAUNCHES[launch]
    if shutil.which(program, path=PATH) is None:
        pytest.skip(f"no {program}")
    # The others have to start within the same seconds, on a machine that other tests keep busy.
    record = run_steps(step(distribution), instances=kind, start_timeout=6.0)
    verdict = record.step("train").verdict
    assert verdict is not None
    name = {"rack": "node-2", "loopback": "127.0.0.3"}[kind]
    assert verdict.reason == f"instance 2 ({name}) did not start within 6 s"
    assert record.status is Status.FAILED


class WhenOthersRun(Observer):
    """Call a function with the agent of the last instance when the ranks of the other two have started."""

    def __init__(self, then: Callable[[psutil.Process], object]) -> None:
        self.then = then
        self.agent: psutil.Process | None = None

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        running = [rank for rank in step.ranks if rank.status is Status.RUNNING]
        if len(running) == 2 and self.agent is None:
            (self.agent,) = filter(_is_idle_agent, psutil.Process().children(recursive=True))
            self.then(self.agent)


def _is_idle_agent(process: psutil.Process) -> bool:
    return "allranks.local.supervisor" in " ".join(process.cmdline()) and not process.children()


def test_a_run_with_a_stopped_instance_can_be_stopped(run_steps: Callable[..., RunRecord]) -> None:
    def stop(agent: psutil.Process) -> None:
        agent.send_signal(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGINT)

    observer = WhenOthersRun(stop)
    record = run_steps(step(PyTorch(1)), observer=observer, grace=0.2)
    assert record.step("train").status is Status.CANCELED
    assert observer.agent is not None
    assert not observer.agent.is_running()


def test_an_instance_that_is_killed_before_it_starts(run_steps: Callable[..., RunRecord]) -> None:
    record = run_steps(step(PyTorch(1)), observer=WhenOthersRun(lambda agent: agent.kill()))
    verdict = record.step("train").verdict
    assert verdict is not None
    assert verdict.reason == "instance 2 (127.0.0.3): its agent was killed from outside the run"
