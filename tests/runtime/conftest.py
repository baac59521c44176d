"""Starting real ranks: a script, a launch of the contract, one process for each rank."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import bounded
import free_ports
from allranks.contract import report
from allranks.contract.launch import Distribution, Launch
from allranks.contract.produce import environment, processes
from allranks.contract.pytorch import PyTorch
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.ranks.ranks import Ranks
from allranks.runtime.script import started
from allranks.runtime.strategies.ddp import Ddp
from forked import Forked

SCRIPTS = Path(__file__).parent / "scripts"
BOUND_SECONDS = 300
CLEARED = ("RANK", "LOCAL_", "WORLD_SIZE", "NODE_RANK", "MASTER_", "AZUREML_", "AZ_BATCH", "MLFLOW_", "GLOO_", "NCCL_")
CLEARED += ("OMPI_", "HOROVOD_", "ALLRANKS_")

FORKED = {
    "averages.py",
    "elastic.py",
    "end.py",
    "end_saving.py",
    "evict.py",
    "fsdp_ranks.py",
    "load_batches.py",
    "log_means.py",
    "log_metrics.py",
    "loss_curves.py",
    "resume.py",
    "settings_of_the_network.py",
    "strategies.py",
    "sum_ranks.py",
    "tools.py",
    "train_digits.py",
    "unequal_steps.py",
}
"""Scripts that are about what ranks do, and not about how Python starts or ends: see forked.py."""


@dataclass(frozen=True)
class Ended:
    """How a rank ended: its exit code (negative for a signal), what it printed, what it reported."""

    rank: int
    code: int
    stdout: str
    stderr: str
    events: tuple[report.Event, ...]

    def of(self, kind: type[report.Event]) -> list[report.Event]:
        return [event for event in self.events if isinstance(event, kind)]


class Started:
    """Ranks that run. Whatever is left of them is killed at the end of the test."""

    def __init__(
        self, folder: Path, script: Path, arguments: list[str], environments: list[dict[str, str]], options: list[str]
    ) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes] | Forked] = []
        for rank, variables in enumerate(environments):
            variables = {**variables, report.VARIABLE: str(folder / f"{rank}.report")}
            if script.name in FORKED and not options:
                self.processes.append(Forked(script, arguments, variables, folder, folder / str(rank)))
                continue
            with (folder / f"{rank}.out").open("wb") as out, (folder / f"{rank}.err").open("wb") as err:
                command = [sys.executable, *options, str(script), *arguments]
                self.processes.append(
                    bounded.Popen(command, env=variables, stdout=out, stderr=err, stdin=subprocess.PIPE, cwd=folder)
                )

    def wait(self) -> list[Ended]:
        for process in self.processes:
            process.wait(BOUND_SECONDS)
        return [
            Ended(
                rank,
                process.returncode,
                (self._folder / f"{rank}.out").read_text(),
                (self._folder / f"{rank}.err").read_text(),
                tuple(report.read(self._folder / f"{rank}.report")[0]),
            )
            for rank, process in enumerate(self.processes)
        ]

    def kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            if process.stdin:
                process.stdin.close()


Start = Callable[..., Started]


def plain_environment(tmp_path: Path) -> dict[str, str]:
    """This process's environment without any launcher's variables, temporary files kept in the test's folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CLEARED)}
    temporary = tmp_path / "tmp"
    temporary.mkdir(exist_ok=True)
    return {**kept, "TMPDIR": str(temporary), "MLFLOW_DISABLE_TELEMETRY": "true"}


@pytest.fixture
def free_port() -> int:
    """A port that nobody listened at a moment ago."""
    return free_ports.free_port()


@pytest.fixture
def start_environment(tmp_path: Path) -> dict[str, str]:
    """What a rank is started with besides its launcher's variables."""
    return plain_environment(tmp_path)


@pytest.fixture(scope="module")
def module_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same, for a job that several tests of a module look at."""
    return plain_environment(tmp_path_factory.mktemp("job"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(script, *arguments, ...) starts a script of the scripts folder on every rank of a launch."""
    yield from _starting(tmp_path)


@pytest.fixture(scope="module")
def start_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """The same, for a job that several tests of a module look at."""
    yield from _starting(tmp_path_factory.mktemp("job"))


def _starting(folder: Path) -> Iterator[Start]:
    runs: list[Started] = []

    def start_ranks(
        script: str,
        *arguments: object,
        distribution: Distribution | None = None,
        instance_count: int = 1,
        variables: Mapping[str, str] | None = None,
        interpreter: Sequence[str] = (),
    ) -> Started:
        """Without a distribution: one process without any launcher. `interpreter`: options of Python's."""
        environments: list[dict[str, str]] = [{}]
        if distribution is not None:
            addresses = tuple(f"127.0.0.{number + 2}" for number in range(instance_count))
            hostnames = tuple(f"instance-{number}" for number in range(instance_count))
            launch = Launch(distribution, addresses, hostnames, free_ports.free_port())
            environments = [environment(launch, process) for process in processes(launch)]
        plain = plain_environment(folder)
        runs.append(
            Started(
                folder / f"run-{len(runs)}",
                SCRIPTS / script,
                [str(argument) for argument in arguments],
                [{**plain, **given, **(variables or {})} for given in environments],
                list(interpreter),
            )
        )
        return runs[-1]

    yield start_ranks
    for run in runs:
        run.kill()


@pytest.fixture
def two(start: Start) -> Callable[..., list[Ended]]:
    """two(script, *arguments): the script on two ranks of one instance, to its end."""
    return lambda script, *arguments, **options: start(script, *arguments, distribution=PyTorch(2), **options).wait()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranks]:
    """The one rank of a training, in the test's own process."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(CLEARED):
            monkeypatch.delenv(name)
    handler = signal.getsignal(signal.SIGTERM)
    with started() as ranks:
        yield ranks
    signal.signal(signal.SIGTERM, handler)
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def place() -> Callable[[int, int], Ranks]:
    """place(rank, world_size): a rank of a training that is not up, for what needs to know its place alone."""
    cpu = torch.device("cpu")
    metrics = Metrics(is_main=False)
    return lambda rank, world_size: Ranks(rank, rank, world_size, world_size, 0, 1, "pytorch", cpu, Ddp(cpu), metrics)
