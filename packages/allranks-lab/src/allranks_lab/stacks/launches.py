"""The launches of every stack, each with its distribution, command and possible layouts. A trial runs one of them with
the local engine and checks the result."""

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from allranks.contract import launchers
from allranks.contract.launch import Distribution
from allranks.contract.layout import Layout
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.tensorflow import TensorFlow
from allranks.history.records import RankRecord, RunRecord, Status
from allranks.local.boot import SOURCE
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.local.stacks import (
    ACCELERATE,
    DEEPSPEED,
    HOROVOD,
    LIGHTNING,
    MPI,
    PYTORCH,
    RAY,
    TENSORFLOW,
    TENSORFLOW_HOROVOD,
    TRANSFORMERS,
    Stack,
)
from allranks.plan import digest
from allranks.plan.environment import Environment
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.workspace import Workspace

LAYOUTS = (Layout(1, 1), Layout(1, 2), Layout(2, 1), Layout(2, 2))


def _start(launch: str, program: str, options: str = "") -> str:
    return launchers.STARTS[launch].replace("{program}", program).replace("{options}", options)


TORCHRUN = _start("torchrun", "torchrun")
LAUNCH = _start("torchrun", "python -m torch.distributed.launch --use_env")
DEEPSPEED_OWN = _start("deepspeed", "deepspeed", " --no_local_rank --module allranks.runtime")
# mpirun sets no variable with an address. Azure ML's variable for it depends on whether there are several instances.
MPI_MASTER = (
    "export MASTER_PORT=${{MASTER_PORT:-6105}} "
    "MASTER_ADDR=${{AZ_BATCHAI_MPI_MASTER_NODE:-${{AZ_BATCH_MASTER_NODE%:*}}}}; "
)
CLEAN = "python -m allranks.runtime "
"""Runs a user's script with the libraries that the runtime prepares, and exits cleanly."""
TORCHRUN_CLEAN = f"{TORCHRUN} -m allranks.runtime"


DISTRIBUTIONS: Mapping[str, Callable[[Layout], Distribution]] = {
    "pytorch": lambda layout: PyTorch(layout.process_count_per_instance),
    "pytorch/node": lambda _: PyTorch(1),
    "mpi": lambda layout: Mpi(layout.process_count_per_instance),
    "mpi/node": lambda _: Mpi(1),
    "tensorflow": lambda layout: TensorFlow(layout.instance_count),
    "tensorflow/server": lambda layout: TensorFlow(layout.instance_count, 1),
    "ray": lambda _: Ray(),
}


@dataclass(frozen=True)
class Launch:
    """One way to start a stack's ranks.

    stacks:  the required stacks; the launch demonstrates the first
    distribution_key: a key of DISTRIBUTIONS
    command: the command line, with the placeholders {nodes}, {each} and {rank}
    layouts: the possible layouts
    reporting_ranks: returns the number of ranks that print their result; default: all
    """

    name: str
    stacks: tuple[Stack, ...]
    distribution_key: str
    command: str
    layouts: tuple[Layout, ...] = LAYOUTS
    reporting_ranks: Callable[[Layout], int] = lambda layout: layout.world_size

    def distribution(self, layout: Layout) -> Distribution:
        return DISTRIBUTIONS[self.distribution_key](layout)

    def command_for(self, layout: Layout) -> str:
        """Return the command that runs on every instance."""
        rank = "$OMPI_COMM_WORLD_RANK" if self.distribution_key == "mpi/node" else "$NODE_RANK"
        each = layout.process_count_per_instance
        return self.command.format(nodes=layout.instance_count, each=each, rank=rank)

    def missing(self, project: Path) -> Stack | None:
        """Return a required stack that is not installed, or None."""
        return next((stack for stack in self.stacks if stack.version(project) is None), None)


ONE_EACH = (Layout(1, 1), Layout(2, 1))
TORCH_ONLY, TENSORFLOW_ONLY = (PYTORCH,), (TENSORFLOW,)

LAUNCHES = (
    Launch("PyTorch, per process", TORCH_ONLY, "pytorch", "python sum_ranks.py pytorch"),
    Launch("PyTorch, torchrun", TORCH_ONLY, "pytorch/node", f"{TORCHRUN} sum_ranks.py pytorch"),
    Launch("PyTorch, torch.distributed.launch", TORCH_ONLY, "pytorch/node", f"{LAUNCH} sum_ranks.py pytorch"),
    Launch("MPI, per process", (MPI,), "mpi", f"{CLEAN} sum_ranks.py mpi"),
    Launch("MPI, per node with torchrun", (MPI, PYTORCH), "mpi/node", f"{MPI_MASTER}{TORCHRUN} sum_ranks.py pytorch"),
    Launch("DeepSpeed by PyTorch", (DEEPSPEED,), "pytorch", f"{CLEAN} sum_ranks.py deepspeed"),
    Launch("DeepSpeed by MPI", (DEEPSPEED, MPI), "mpi", f"{CLEAN} sum_ranks.py deepspeed"),
    Launch("DeepSpeed by torchrun", (DEEPSPEED,), "pytorch/node", f"{TORCHRUN_CLEAN} sum_ranks.py deepspeed"),
    Launch("DeepSpeed, own launcher", (DEEPSPEED,), "pytorch/node", f"{DEEPSPEED_OWN} sum_ranks.py deepspeed"),
    Launch("Horovod by MPI", (HOROVOD,), "mpi", f"{CLEAN} sum_ranks.py horovod"),
    Launch("TensorFlow, workers", TENSORFLOW_ONLY, "tensorflow", "python sum_ranks.py tensorflow", ONE_EACH),
    Launch(
        "TensorFlow, parameter server",
        TENSORFLOW_ONLY,
        "tensorflow/server",
        "python sum_ranks.py tensorflow_servers",
        (Layout(2, 1),),
        lambda layout: layout.instance_count - 1,
    ),
    Launch("TensorFlow, Horovod by MPI", (TENSORFLOW_HOROVOD,), "mpi", "python sum_ranks.py tensorflow_horovod"),
    Launch("Lightning, per node", (LIGHTNING,), "pytorch/node", f"{CLEAN} sum_ranks.py lightning {{each}} per-node"),
    Launch("Lightning, per process", (LIGHTNING,), "pytorch", f"{CLEAN} sum_ranks.py lightning {{each}}"),
    Launch("Lightning, torchrun", (LIGHTNING,), "pytorch/node", f"{TORCHRUN} sum_ranks.py lightning {{each}}"),
    Launch("Lightning, MPI", (LIGHTNING, MPI), "mpi", f"{CLEAN} sum_ranks.py lightning {{each}}"),
    Launch("Trainer, per process", (TRANSFORMERS,), "pytorch", f"{CLEAN} sum_ranks.py transformers"),
    Launch(
        "Trainer, torchrun",
        (TRANSFORMERS,),
        "pytorch/node",
        f"{TORCHRUN_CLEAN} sum_ranks.py transformers",
    ),
    Launch("Accelerate", (ACCELERATE,), "pytorch", f"{CLEAN} sum_ranks.py accelerate"),
    Launch("Ray", (RAY,), "ray", "python sum_ranks.py ray {each}"),
)

FIRST = tuple({launch.stacks[0].name: launch for launch in reversed(LAUNCHES)}.values())[::-1]
"""The simplest launch of each stack."""

TWO_RANKS = (Layout(1, 2), Layout(2, 1))

RANKS = Path(__file__).resolve().parent / "ranks"
TIMEOUT = 240.0
"""Seconds after which a launch counts as hanging."""


def run_trial(launch: Launch, layout: Layout, kind: str, workspace: Workspace, project: Path) -> str:
    """Run a launch on a layout, and return a description of its failure. Return "" if all ranks are distinct, world
    size and local ranks are correct, the stack's own all-reduce is correct, and every rank exited with 0.

    kind:    the kind of instances: auto, rack or loopback
    project: the folder with the virtual environments of stacks that have their own
    """
    step = Step(
        "ranks",
        launch.command_for(layout),
        code=Code(str(RANKS), digest.of_path(RANKS)),
        environment=Environment(launch.stacks[0].environment),
        environment_variables={"PYTHONPATH": str(_import_folder(workspace))},
        distribution=launch.distribution(layout),
        instance_count=layout.instance_count,
        timeout=TIMEOUT,
        deterministic=False,
    )
    plan = Plan("stacks", Graph((step,)), source=str(project / "stacks"))
    record = run(plan, workspace, Options(instances=kind, track=False))
    return _failure(record, layout, launch.reporting_ranks(layout))


def _import_folder(workspace: Workspace) -> Path:
    """Return a folder that contains only the package allranks. An installed allranks is beside other packages, of which
    the stack has its own versions."""
    folder = workspace.root / "imports"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "allranks").symlink_to(Path(SOURCE, "allranks"))
    return folder


def _failure(record: RunRecord, layout: Layout, world_size: int) -> str:
    (step,) = record.steps
    if record.status is not Status.COMPLETED:
        tail = "\n".join(step.verdict.tail) if step.verdict else ""
        return f"{step.verdict.reason if step.verdict else record.status}\n{tail}"
    results = sorted(_results(step.ranks), key=lambda result: int(result["rank"]))
    total = sum(range(1, world_size + 1))
    expected = [
        {"rank": rank, "world_size": world_size, "local_rank": rank % layout.process_count_per_instance, "total": total}
        for rank in range(world_size)
    ]
    return "" if results == expected else f"found {results}, expected {expected}"


def _results(ranks: list[RankRecord]) -> list[dict[str, float]]:
    return [
        json.loads(text)
        for rank in ranks
        for text in re.findall(r"result (\{.*?\})", Path(rank.log).read_text(encoding="utf-8", errors="replace"))
    ]
