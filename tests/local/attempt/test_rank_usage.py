"""The resource usage of a step's ranks, from their processes to the record."""

import sys
from pathlib import Path

import pytest

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.history import stored
from allranks.history.records import Status, StepRecord
from allranks.plan.graph import Step
from allranks.workspace import Workspace
from mpirun import needs_mpirun

PYTHON = f"{sys.executable} -I -S -c"
BURN = f"{PYTHON} 'import time; end = time.time() + 1.7; any(iter(lambda: time.time() > end, True))'"


def _stored(workspace: Workspace, run: str, step: str) -> StepRecord:
    record = stored.run(workspace, run)
    assert record.step(step).usage == {}  # not read unless it is asked for
    stored.load_usage(workspace, record)
    return record.step(step)


@pytest.mark.slow
def test_samples_of_every_rank_are_stored(kind: str, run_steps, workspace: Workspace) -> None:
    record = run_steps(Step("train", BURN, distribution=PyTorch(2), instance_count=2), instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    step = record.step("train")
    for rank in step.ranks:
        assert rank.cpu_seconds is not None
        assert 0.1 < rank.cpu_seconds < 3
        assert 1 << 20 < (rank.peak_memory or 0) < 1 << 30
        assert rank.peak_gpu_memory is None
    assert {rank for sample in step.usage[0] for rank in sample.ranks} == {0, 1}
    assert {rank for sample in step.usage[1] for rank in sample.ranks} == {2, 3}
    assert _stored(workspace, record.id, "train").usage == step.usage


def test_a_short_step_has_its_totals_alone(kind: str, run_steps, workspace: Workspace) -> None:
    command = f"{PYTHON} 'data = b\"x\" * (40 << 20)'"
    record = run_steps(Step("short", command), instances=kind)
    (rank,) = record.step("short").ranks
    assert 0 < (rank.cpu_seconds or 0) < 2
    assert 40 << 20 < (rank.peak_memory or 0) < 400 << 20
    usage = record.step("short").usage
    assert usage == _stored(workspace, record.id, "short").usage
    assert len(usage.get(0, ())) <= 1  # on a machine so slow that the step takes longer than the first interval


@needs_mpirun
@pytest.mark.slow
def test_ranks_that_mpirun_starts_have_their_own_usage(kind: str, run_steps) -> None:
    command = f"if [ $OMPI_COMM_WORLD_RANK = 1 ]; then sleep 1.7; else {BURN.replace('1.7', '2.5')}; fi"
    record = run_steps(Step("mpi", command, distribution=Mpi(1), instance_count=2), instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    busy, idle = record.step("mpi").ranks
    assert (busy.cpu_seconds or 0) > 10 * (idle.cpu_seconds or 1)
    usage = record.step("mpi").usage
    assert {rank for sample in usage[0] for rank in sample.ranks} == {0}
    assert {rank for sample in usage[1] for rank in sample.ranks} == {1}


def test_a_retry_forgets_the_samples_of_the_attempt_before(run_steps, workspace: Workspace, tmp_path: Path) -> None:
    command = f"if [ -e {tmp_path}/again ]; then exit 0; fi; touch {tmp_path}/again; sleep 1.3; exit 3"
    record = run_steps(Step("train", command), retries=1)
    assert record.status is Status.COMPLETED, record.verdict
    assert record.step("train").usage == _stored(workspace, record.id, "train").usage == {}
