"""Each distribution type, started as the platform starts it, with real processes on emulated instances."""

import contextlib
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from allranks.contract.mpi import Mpi
from allranks.contract.tensorflow import TensorFlow
from allranks.errors import InputError
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.local.launchers.by_distribution import LAUNCHERS
from allranks.plan.graph import Step
from allranks.workspace import Workspace
from mpirun import MPIRUN, needs_mpirun

PLACE = "echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK $AZUREML_CR_NODE_RANK"


def logs(record: RunRecord) -> list[str]:
    return [Path(rank.log).read_text().strip() for rank in record.steps[0].ranks]


def states(record: RunRecord) -> list[Status]:
    return [rank.status for rank in record.steps[0].ranks]


@needs_mpirun
@pytest.mark.parametrize("each", [1, 2], ids=["per-node", "per-process"])
def test_mpirun_places_ranks_on_the_instances(kind: str, each: int, run_steps) -> None:
    step = Step("mpi", f"{PLACE} $(hostname); pwd", distribution=Mpi(each), instance_count=2)
    record = run_steps(step, instances=kind)
    assert states(record) == [Status.COMPLETED] * 2 * each
    for rank, text in enumerate(logs(record)):
        instance = rank // each
        assert text.startswith(f"{rank}/{2 * each} {rank % each} {instance}")
        assert f"instances/{instance}/code" in text
        if kind == "rack":
            assert f"node-{instance}" in text.split()


@needs_mpirun
def test_ranks_of_mpi_speak_with_each_other(kind: str, run_steps) -> None:
    script = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(10 ** MPI.COMM_WORLD.rank))"
    record = run_steps(Step("mpi", f'python -c "{script}"', distribution=Mpi(2), instance_count=2), instances=kind)
    assert logs(record) == ["1111"] * 4


@needs_mpirun
def test_a_failed_rank_of_mpi_is_named(kind: str, run_steps) -> None:
    step = Step("mpi", "[ $OMPI_COMM_WORLD_RANK = 2 ] && exit 7; sleep 600", distribution=Mpi(2), instance_count=2)
    record = run_steps(step, instances=kind)
    verdict = record.steps[0].verdict
    assert verdict is not None
    assert (verdict.rank, verdict.instance_rank, verdict.reason) == (2, 1, "exit code 7")
    assert [state for rank, state in enumerate(states(record)) if rank != 2] == [Status.CANCELED] * 3


@needs_mpirun
def test_the_end_of_mpirun_is_the_end_of_its_ranks(kind: str, run_steps, workspace: Workspace) -> None:
    # The rank kills mpirun, its parent's parent: on real machines that leaves every rank running.
    kill = "[ $OMPI_COMM_WORLD_RANK = 0 ] && kill -9 $(ps -o ppid= -p $PPID); echo $$; sleep 600"
    record = run_steps(Step("mpi", kill, distribution=Mpi(1), instance_count=2), instances=kind)
    verdict = record.steps[0].verdict
    assert verdict is not None
    assert verdict.reason == "mpirun was ended by SIGKILL"
    assert set(states(record)) <= {Status.CANCELED, Status.NOT_STARTED}  # the other one may not have been there yet
    # Every process of a rank and its daemons names a file below the workspace.
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if str(workspace.root) in " ".join(command)]


class KillsMpirun(Observer):
    """Kills mpirun once rank 0 has failed. Its process id is the first word in the log of rank 0."""

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        if [rank.status for rank in step.ranks[:1]] == [Status.FAILED]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(Path(step.ranks[0].log).read_text().split()[0]), signal.SIGKILL)


@needs_mpirun
@pytest.mark.parametrize(
    ("observer", "reason"),
    [
        pytest.param(KillsMpirun(), "mpirun was ended by SIGKILL", id="killed"),
        pytest.param(None, "ConnectionResetError: Connection reset by peer", id="ended by the engine"),
    ],
)
def test_a_connection_that_a_rank_lost_is_the_cause_unless_mpirun_was_killed(
    observer: Observer | None, reason: str, run_steps
) -> None:
    # A stopped mpirun cannot end before the rank.
    script = """mpirun=$(ps -o ppid= -p $PPID); [ $OMPI_COMM_WORLD_RANK = 0 ] || sleep 600
        echo $mpirun; kill -STOP $mpirun; python -c "raise ConnectionResetError('Connection reset by peer')" """
    record = run_steps(Step("mpi", script, distribution=Mpi(2), instance_count=1), observer=observer)
    verdict = record.steps[0].verdict
    assert verdict is not None
    assert verdict.reason == reason


@needs_mpirun
def test_a_world_of_mpi_that_is_smaller_than_declared(
    run_steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Open MPI 5 starts it from the variables for 4: on one instance, as if the others did not exist."""
    mpirun = Path(MPIRUN or "")
    alone = tmp_path / "mpirun"
    options = "--allow-run-as-root --oversubscribe -np 2 --mca btl self,tcp"
    alone.write_text(
        f"""#!/bin/sh
        export OPAL_PREFIX={mpirun.parent.parent}
        while [ "$1" != --bind-to ]; do shift; done
        exec {mpirun} {options} "$@"
        """
    )
    alone.chmod(0o700)
    monkeypatch.setattr("allranks.local.launchers.mpi.MPIRUN", str(alone))
    record = run_steps(Step("mpi", "sleep 600", distribution=Mpi(2), instance_count=3))
    verdict = record.steps[0].verdict
    assert verdict is not None
    assert verdict.reason == "mpirun started a world of 2 ranks; the step was declared with 6"


def test_no_mpirun(run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAUNCHERS, "mpi", replace(LAUNCHERS["mpi"], program="no-such-mpirun"))
    with pytest.raises(InputError) as raised:
        run_steps(Step("mpi", "true", distribution=Mpi(1)))
    assert 'pip install "allranks[mpi]"' in str(raised.value)


def test_parameter_servers_end_with_the_chief(kind: str, run_steps) -> None:
    command = """python -c '
import json, os, time
task = json.loads(os.environ["TF_CONFIG"])["task"]
print(task["type"], task["index"])
time.sleep(600 * (task != {"type": "worker", "index": 0}))
'"""
    record = run_steps(Step("tf", command, distribution=TensorFlow(2, 1), instance_count=2), instances=kind)
    assert record.status is Status.COMPLETED
    assert states(record) == [Status.COMPLETED] * 3
    assert logs(record)[0] == "worker 0"


def test_a_failing_parameter_server_is_a_failure(run_steps) -> None:
    command = 'case $TF_CONFIG in *\'"type": "ps"\'*) exit 3;; esac; sleep 600'
    record = run_steps(Step("tf", command, distribution=TensorFlow(1, 1)))
    verdict = record.steps[0].verdict
    assert verdict is not None
    assert (verdict.rank, verdict.reason) == (1, "exit code 3")
