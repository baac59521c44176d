"""The table of faults: which stacks, which faults, and for each pair of them the right verdict."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from allranks.contract.layout import Layout
from allranks.local.stacks import ACCELERATE, DEEPSPEED, HOROVOD, LIGHTNING, MPI, PYTORCH, RAY, TENSORFLOW
from allranks_lab.stacks.launches import TORCHRUN, Launch

STACKS = {
    "DDP": Launch("", (PYTORCH,), "pytorch", "python torch_ranks.py ddp"),
    "FSDP2": Launch("", (PYTORCH,), "pytorch", "python torch_ranks.py fsdp2"),
    "ZeRO 1 by PyTorch": Launch("", (DEEPSPEED,), "pytorch", "python deepspeed_ranks.py 1"),
    "ZeRO 3 by PyTorch": Launch("", (DEEPSPEED,), "pytorch", "python deepspeed_ranks.py 3"),
    "ZeRO 1 by MPI": Launch("", (DEEPSPEED, MPI), "mpi", "python deepspeed_ranks.py 1"),
    "ZeRO 3 by MPI": Launch("", (DEEPSPEED, MPI), "mpi", "python deepspeed_ranks.py 3"),
    "Horovod": Launch("", (HOROVOD,), "mpi", "python horovod_ranks.py"),
    "TensorFlow": Launch("", (TENSORFLOW,), "tensorflow", "python tensorflow_workers.py"),
    "torchrun": Launch("", (PYTORCH,), "pytorch/node", f"{TORCHRUN} torch_ranks.py ddp"),
    "Accelerate": Launch("", (ACCELERATE,), "pytorch", "python accelerate_ranks.py"),
    "Lightning": Launch("", (LIGHTNING,), "pytorch", "python lightning_ranks.py"),
    "MPI": Launch("", (MPI,), "mpi", "python mpi_ranks.py"),
    "Ray": Launch("", (RAY,), "ray", "python ray_actors.py"),
}
OF_MPI = tuple(name for name, stack in STACKS.items() if stack.distribution_key == "mpi")
TIMED = ("DDP", "Horovod", "MPI", "TensorFlow", "Ray")
"""Those whose logs of a hang are judged. The others of PyTorch wait in the same collectives of gloo as DDP."""
PER_NODE = ("TensorFlow",)
QUICK_STACKS = ("DDP", "FSDP2", "torchrun", "Accelerate", "MPI", "Horovod", "TensorFlow")
"""Those that start within seconds, on any number of instances and ranks: random faults are theirs."""
MASTERS = tuple(name for name in STACKS if name not in (*OF_MPI, "Ray"))


@dataclass(frozen=True)
class Fault:
    """A fault, and what the verdict says of it.

    cause:   a pattern of the verdict's reason
    ranks:   that the verdict may blame, where there are four; None among them, or none: it may blame no rank
    struck:  the ranks that the script breaks
    kills:   the process that is killed from outside: agent, launcher, mpirun, engine; "" if the script breaks itself
    between: stacks that report it as one between ranks, of which the verdict may blame any; so do the logs of all, or
             they blame none
    injects: what the engine is told by --fault
    hangs:   whether nothing ends by itself
    stacks:  all, or some
    causes:  another pattern for some stacks
    by_logs: what the logs alone can show of it, if that is another cause
    """

    name: str
    cause: str
    ranks: tuple[int | None, ...] = (2,)
    struck: tuple[int, ...] = (2,)
    kills: str = ""
    between: tuple[str, ...] = ()
    injects: str = ""
    hangs: bool = False
    stacks: tuple[str, ...] = tuple(STACKS)
    causes: Mapping[str, str] = field(default_factory=dict, hash=False)
    by_logs: str = ""


def _but(*names: str) -> tuple[str, ...]:
    return tuple(name for name in STACKS if name not in names)


SILENT = "its log ends without an exception"
KILLED = f"SIGKILL|{SILENT}"
EVICTED, EVICTION = "^instance 1 was evicted", "evict:instance=1,after=9s,grace={}s,back=never"
LOST = "evicted"
LIBRARIES = ("Horovod", "MPI", "TensorFlow")
MISMATCH = (
    r"it called \w+ of .*, and ranks?|[Mm]ismatch|truncate|MPI_ERR|shape|data_type|op\.preamble|gloo aborted|waits in"
)
FAULTS = (
    Fault("exception", "^ValueError: bad batch in shard 7$"),
    Fault("exception and a thread", "^ValueError: bad batch in shard 7$", stacks=_but("Ray")),
    Fault(
        "exit code", "^exit code 3$", stacks=_but("Ray"), causes={"MPI": "it exits"}, by_logs=f"^exit code 3$|{SILENT}"
    ),
    Fault("SIGKILL", "SIGKILL", by_logs=KILLED, causes={"Ray": "ActorDiedError"}),
    Fault("SIGKILL of rank 0", "SIGKILL", (0,), (0,), by_logs=KILLED, causes={"Ray": "ActorDiedError"}),
    Fault("SIGSEGV", "SIGSEGV", by_logs=f"SIGSEGV|{SILENT}", causes={"Ray": "ActorDiedError"}),
    Fault("SIGKILL of the launcher", "SIGKILL", ranks=(1,), kills="launcher", stacks=("torchrun",), by_logs=KILLED),
    Fault("SIGKILL of the agent", "instance 1.*agent was killed", ranks=(), kills="agent"),
    Fault(
        "SIGKILL of mpirun",
        "mpirun was ended by SIGKILL",
        ranks=(),
        kills="mpirun",
        stacks=OF_MPI,
        by_logs="^mpirun was killed",
    ),
    Fault("SIGKILL of the engine", "^Interrupted$", ranks=(), kills="engine"),
    Fault("SIGSTOP", "is stopped by a signal", hangs=True, by_logs=SILENT),
    Fault("hang before", r"(it|worker) is at `time\.sleep\(1000\)`", hangs=True, by_logs=SILENT),
    Fault("hang between", r"it is at `time\.sleep\(1000\)`", hangs=True, by_logs=SILENT, stacks=_but("Ray")),
    Fault("hang after", r"it is at `time\.sleep\(1000\)`", hangs=True, by_logs=SILENT, stacks=_but("Ray")),
    Fault(
        "GIL locked",
        r"^(it|its Ray worker) (is|holds the GIL) at `ctypes\.PyDLL\(None\)\.sleep",
        hangs=True,
        by_logs=SILENT,
    ),
    Fault("eviction", EVICTED, (), injects=EVICTION.format(2), by_logs=LOST),
    Fault("eviction without grace", EVICTED, (), injects=EVICTION.format(0), by_logs=f"{LOST}|SIGKILL"),
    Fault(
        "partition",
        "no message arrives",
        (),
        injects="cut:instance=1,after=9s",
        hangs=True,
        causes={"Ray": f"no task of Ray runs|{LOST}"},
        by_logs="no message arrives|mpirun lost its daemon|cut off",
    ),
    Fault("out of memory", "^MemoryError"),
    Fault("full disk", "No space left on device"),
    Fault("port in use", "Address already in use", stacks=_but("Ray")),
    Fault("missing module", "No module named 'tokenizer_of_the_team'", (2, 3), (2, 3), stacks=_but("Ray")),
    Fault("shape mismatch", MISMATCH, between=LIBRARIES, stacks=_but("Ray")),
    Fault("type mismatch", MISMATCH, between=LIBRARIES, stacks=_but("Ray")),
    Fault("order mismatch", MISMATCH, between=("MPI",), stacks=_but("Ray", "TensorFlow")),
    Fault(
        "wrong world size", "world.?size|joining a group with size", between=("TensorFlow",), hangs=True, stacks=MASTERS
    ),
    Fault("bad master", r"connect|198\.51\.100\.7|DistNetworkError", ranks=(), hangs=True, stacks=MASTERS),
    Fault("NaN", "^FloatingPointError: the loss is nan at step 2$"),
)


ALSO_HANG = {("exit code", "MPI"), ("order mismatch", "MPI"), ("order mismatch", "Horovod")}
"""Faults that end by themselves in other stacks only: a rank of plain mpi4py waits in MPI_Finalize for the others, and
neither MPI nor Horovod compares the order of collectives."""


@dataclass(frozen=True)
class Cell:
    """A fault of a stack.

    step:  at which it happens
    shape: of the job, if it is not that of the table; then the ranks of the fault are of this shape
    """

    stack: str
    fault: Fault
    step: int = 2
    shape: Layout | None = None

    @property
    def name(self) -> str:
        return f"{self.stack}, {self.fault.name}"

    @property
    def launch(self) -> Launch:
        return STACKS[self.stack]

    @property
    def hangs(self) -> bool:
        """Whether nothing ends by itself."""
        return self.fault.hangs or (self.fault.name, self.stack) in ALSO_HANG

    @property
    def layout(self) -> Layout:
        """Two instances with two ranks each; TensorFlow has a worker on each."""
        return self.shape or Layout(2, 1 if self.stack in PER_NODE else 2)

    @property
    def struck(self) -> tuple[int | None, ...]:
        """The ranks that the script breaks."""
        return self._scaled(self.fault.struck)

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """The ranks that the verdict may blame."""
        if self.stack in self.fault.between:
            return (*range(self.layout.world_size), *(rank for rank in self.fault.ranks if rank is None))
        if self.stack == "Ray" and self.fault.ranks and not self.fault.injects:
            return (1,) if self.fault.hangs else (0,)  # the second instance has the actor, the driver its exception
        return self._scaled(self.fault.ranks)

    @property
    def cause(self) -> str:
        return self.fault.causes.get(self.stack, self.fault.cause)

    @property
    def injects(self) -> str:
        """What the engine is told by --fault. Lightning begins to train late."""
        return self.fault.injects.replace("9s", "25s") if self.stack == "Lightning" else self.fault.injects

    @property
    def breaks_itself(self) -> bool:
        """Whether the script does what goes wrong: nothing from outside strikes the run."""
        return not (self.fault.kills or self.fault.injects)

    @property
    def is_told_by_others(self) -> bool:
        """Whether its logs are those of another run, in which the engine leaves the other ranks the time in which they
        say what they have lost or waited for."""
        fault = self.fault
        return bool(fault.hangs or fault.injects or fault.between or fault.by_logs)

    @property
    def by_logs(self) -> Cell | None:
        """What is right over the logs alone; None if it broke what there is not on Azure ML, or if it is like that of
        another stack."""
        fault = self.fault
        if fault.kills in ("engine", "agent") or (fault.hangs and self.stack not in TIMED):
            return None
        if fault.name == "bad master" or fault.between:
            return replace(self, fault=replace(fault, ranks=(0, 1, 2, 3, None)))
        second = (1,) if self.stack in ("torchrun", "Ray") else (2, 3)
        instance = second if fault.kills == "launcher" else (*second, None) if fault.injects else fault.ranks
        return replace(self, fault=replace(fault, cause=fault.by_logs or fault.cause, ranks=instance))

    def _scaled(self, ranks: tuple[int | None, ...]) -> tuple[int | None, ...]:
        each = 2 if self.shape else self.layout.process_count_per_instance
        return tuple(dict.fromkeys(rank if rank is None else rank * each // 2 for rank in ranks))


CELLS = tuple(Cell(stack, fault) for stack in STACKS for fault in FAULTS if stack in fault.stacks)


def random_cell(seed: int) -> Cell:
    """Return a cell with a random stack, layout, fault and step, on a random rank or instance."""
    chosen = random.Random(seed)
    stack = chosen.choice(QUICK_STACKS)
    each = 1 if stack in PER_NODE else chosen.randint(1, 3)
    shape = Layout(chosen.randint(1 if each > 1 else 2, 3), each)
    possible = [fault for fault in FAULTS if stack in fault.stacks]
    if shape.instance_count == 1:
        possible = [fault for fault in possible if not (fault.kills or fault.injects)]
    fault, step, instance = chosen.choice(possible), chosen.randrange(5), str(chosen.randrange(shape.instance_count))
    # Rank 0 is the root of the broadcast that one rank calls too many: it sends, and may wait for nobody.
    rank = chosen.randrange(int(fault.name == "order mismatch"), shape.world_size)
    if fault.injects:
        injects = fault.injects.replace("instance=1", f"instance={instance}").replace("9s", f"{chosen.randint(7, 12)}s")
        fault = replace(fault, injects=injects, cause=fault.cause.replace("instance 1", f"instance {instance}"))
    elif not fault.kills:
        # Of two ranks that differ, either may be wrong.
        between = shape.world_size == 2 and "mismatch" in fault.name
        blamed = () if not fault.ranks else (0, 1) if between else (rank,)
        cause = fault.cause.replace("step 2", f"step {step}")
        fault = replace(fault, name=fault.name.removesuffix(" of rank 0"), ranks=blamed, cause=cause)
    return Cell(stack, replace(fault, struck=(rank,)), step, shape)
