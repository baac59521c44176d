"""Components run as real processes, as a platform runs them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import bounded
from allranks.catalog.find import find_specs
from allranks.contract import produce
from allranks.contract.launch import Launch
from allranks.contract.pytorch import PyTorch
from forked import Forked
from free_ports import free_port

COMPONENTS = Path(__file__).parents[2] / "components"
BOUND_SECONDS = 200


def folder_of(component: str) -> Path:
    """Return the folder of a component."""
    (spec,) = [spec for spec in find_specs(COMPONENTS) if spec.parent.name == component]
    return spec.parent


@dataclass(frozen=True)
class Ended:
    """How the processes of a component ended: exit codes and standard errors by rank, what all of them printed."""

    codes: list[int]
    output: str
    errors: list[str]


class Running:
    """The ranks of a job that runs. What each writes is in a file of its own."""

    def __init__(self, processes: list[Forked | subprocess.Popen[bytes]], outputs: Path) -> None:
        self.processes, self._outputs = processes, outputs

    def output(self, rank: int) -> str:
        """Return what a rank has written to its standard output so far."""
        file = self._outputs / f"{rank}.out"
        return file.read_text() if file.exists() else ""

    def errors(self) -> list[str]:
        """Return what each rank has written to its standard error, of those that have ended."""
        return [(self._outputs / f"{rank}.err").read_text() for rank in range(len(self.processes))]

    def ended(self) -> Ended:
        """Wait until every rank has ended. A rank that does not fails the test, with what each rank has written."""
        deadline = time.monotonic() + BOUND_SECONDS
        try:
            for process in self.processes:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(deadline - time.monotonic(), 0))
            codes = [process.poll() for process in self.processes]
        finally:
            self.kill()
        outputs = [self.output(rank) for rank in range(len(codes))]
        told = list(zip(codes, outputs, self.errors(), strict=True))
        assert None not in codes, f"a rank has not ended in {BOUND_SECONDS} s: {told}"
        return Ended([code for code in codes if code is not None], "".join(outputs), self.errors())

    def kill(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()


def run_script(
    component: str,
    *arguments: str,
    script: Path,
    folder: Path,
    ranks: int = 1,
) -> Ended:
    """Run a component's script, in a folder of its own, on so many ranks; one is a plain process with no launcher."""
    with running_script(component, *arguments, script=script, folder=folder, ranks=ranks) as job:
        return job.ended()


@contextmanager
def running_script(
    component: str,
    *arguments: str,
    script: Path,
    folder: Path,
    ranks: int = 1,
) -> Iterator[Running]:
    """The same, while it runs. What is left of it is killed at the end of the block."""
    environment = clean() | {"PYTHONPATH": str(folder_of(component)), "OMP_NUM_THREADS": "1"} | temporary(folder)
    environments = [environment]
    if ranks > 1:
        launch = Launch(PyTorch(ranks), ("127.0.0.1",), ("localhost",), master_port=free_port())
        environments = [environment | produce.environment(launch, process) for process in produce.processes(launch)]
    with tempfile.TemporaryDirectory() as outputs:
        job = Running([], Path(outputs))
        try:
            for rank, variables in enumerate(environments):
                job.processes.append(Forked(script, list(arguments), variables, folder, Path(outputs) / str(rank)))
            yield job
        finally:
            job.kill()


def run_small_script(component: str, *arguments: str, folder: Path, **variables: str) -> Ended:
    """Run the script of a component that imports nothing large, as a process of its own.

    variables: further ones of its environment
    """
    script = str(folder_of(component) / f"{component}.py")
    return run([[sys.executable, script, *arguments]], [clean() | variables], folder)


def run(commands: list[list[str]], environments: list[dict[str, str]], folder: Path) -> Ended:
    """Run a command for each rank to its end. If one does not end, the failure shows how all are, and all output."""
    with tempfile.TemporaryDirectory() as outputs:
        job = Running([], Path(outputs))
        for rank, (command, variables) in enumerate(zip(commands, environments, strict=True)):
            with open(f"{outputs}/{rank}.out", "wb") as out, open(f"{outputs}/{rank}.err", "wb") as err:
                environment = variables | temporary(folder)
                job.processes.append(bounded.Popen(command, env=environment, cwd=folder, stdout=out, stderr=err))
        return job.ended()


def temporary(folder: Path) -> dict[str, str]:
    """The variable that keeps a process's temporary files in its own folder."""
    place = folder / "temporary"
    place.mkdir(parents=True, exist_ok=True)
    return {"TMPDIR": str(place)}


def clean() -> dict[str, str]:
    """This environment without what a launcher or a tracking server would have set."""
    told = ("AZUREML_", "AZ_BATCH", "MLFLOW_", "ALLRANKS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(told)}


def train(data: Path, folder: Path, *arguments: str, ranks: int = 1) -> Ended:
    places = ["--data", str(data), "--model", str(folder / "model"), "--checkpoints", str(folder / "checkpoints")]
    places += ["--history", str(folder / "history")]
    script = COMPONENTS / "image_classification/train_image_classifier/train.py"
    return run_script("train_image_classifier", *places, *arguments, script=script, folder=folder, ranks=ranks)


def evaluate(data: Path, model: Path, folder: Path, *arguments: str, ranks: int = 1) -> Ended:
    places = ["--data", str(data), "--model", str(model), "--metrics", str(folder / "metrics")]
    script = COMPONENTS / "image_classification/evaluate_image_classifier/evaluate.py"
    return run_script("evaluate_image_classifier", *places, *arguments, script=script, folder=folder, ranks=ranks)


def shard(data: Path, shards: Path, folder: Path, *arguments: str, ranks: int = 1) -> Ended:
    places = ["--data", str(data), "--shards", str(shards)]
    script = COMPONENTS / "image_classification/shard_dataset/shard_dataset.py"
    return run_script("shard_dataset", *places, *arguments, script=script, folder=folder, ranks=ranks)
