"""Choose the fork server of a step, and start it ahead of the ranks. It imports torch, if the step's code names it, and
some modules that torch uses."""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from allranks.contract.commands import Start, starts
from allranks.contract.mpi import Mpi
from allranks.contract.ray import Ray
from allranks.local import interpreters, rank_environment, script_imports
from allranks.local.instances.instance import InstanceKind
from allranks.local.instances.supervisor import ForkServerSpec, Supervisor
from allranks.local.scope import Scope
from allranks.plan.graph import Step

SHOW_IMPORTS = frozenset({"PYTHONPROFILEIMPORTTIME", "PYTHONVERBOSE"})
"""Variables that make Python report its imports."""

GPUS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Variables that select the GPUs of a process. Ranks read them later; a fork server gets only values that hide all."""

RUNTIME = r"from allranks import runtime\b"
_NAMES = (
    r"(?:from|import)\s[^\n#]*\b(?:torch|accelerate|deepspeed|lightning|peft|pytorch_lightning|transformers|trl)\b|"
    f"{RUNTIME}"
)
AT_TOP = re.compile(f"^(?:{_NAMES})", re.MULTILINE)
IN_FUNCTION = re.compile(rf"^\s+(?:{_NAMES})", re.MULTILINE)
"""Imports of torch, or of packages that import it."""

TORCH = ("numpy", "torch", "torch.distributed")
MORE = {
    # Building any optimizer imports it, and any model of Transformers.
    "torch._dynamo": rf"\boptim\b|\bcompile\b|\bdeepspeed\.initialize\b|\btransformers\b|{RUNTIME}",
    "torch.distributed.checkpoint": RUNTIME,
    "transformers.modeling_utils": r"\b(?:from|import)\b[^\n#]*\btransformers\b",
    "transformers.trainer": r"\bfrom transformers import\b[^)]*\bTrainer\b",
    "deepspeed.ops.op_builder.all_ops": r"\b(?:from|import)\b[^\n#]*\bdeepspeed\b",
}
"""Further modules to import for a program whose text matches. A launch of four ranks with a model of Transformers
takes 7.5 s of CPU time with them, and 21 s with torch only."""

LOOK_FOR_GPUS = frozenset({"deepspeed.ops.op_builder.all_ops"})
"""Modules that use a GPU when they are imported. A process that has used one cannot be forked."""

MLFLOW = ("mlflow", "mlflow.store.tracking.sqlalchemy_store", "mlflow.pyfunc")
USES_MLFLOW = rf"\b(?:import|from) mlflow\b|{RUNTIME}"
"""Modules for a step with an MLflow run, and the pattern of the programs that use them."""


@dataclass(eq=False)
class ForkServers:
    """The fork servers of one run.

    source: the pipeline's file
    tracks: returns whether a step has an MLflow run
    cold:   returns whether the programs of a step start as new processes
    """

    supervisor: Supervisor
    kind: InstanceKind
    source: str
    tracks: Callable[[Step], bool]
    cold: Callable[[Step], bool]

    def __post_init__(self) -> None:
        self._specs: list[ForkServerSpec] = []

    async def prepare(self, step: Step, scope: Scope, gpus: Mapping[str, str] | None = None) -> ForkServerSpec | None:
        """Start the fork server of the step without waiting for it, and return it; None if there is none.

        gpus: the variables that select the GPUs of an instance, if they are known
        """
        spec = None if self.cold(step) else self._spec(step, scope, gpus or {})
        if spec is not None:
            await self.supervisor.prepare(spec)
        return spec

    async def prepare_followers(self, step: Step, scope: Scope) -> None:
        """Start the fork servers of the steps that need this one, which has started.

        The first tutorial's three steps import different packages. Without this, its run took 1.5 times as long on two
        busy cores.
        """
        for follower in scope.graph.followers.get(step.name, ()):
            if isinstance(follower, Step):
                await self.prepare(follower, scope)

    def _spec(self, step: Step, scope: Scope, gpus: Mapping[str, str]) -> ForkServerSpec | None:
        """Return the fork server of a step, whose inputs may not exist yet."""
        distribution = step.distribution
        programs = starts(step.command)
        if not programs or isinstance(distribution, Ray):
            return None
        interpreter = interpreters.find(step.environment, self.source)
        ranks = distribution.processes(step.instance_count)
        is_mpi = isinstance(distribution, Mpi)
        machine = rank_environment.machine_variables(os.environ, interpreter, len(ranks), mpirun=is_mpi)
        own = rank_environment.variables_of(step, scope)
        environment = {**machine, **gpus, **self.kind.environment(), **own}
        python_path = tuple(filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)))
        python = shutil.which("python", path=environment["PATH"])
        if (
            python is None
            or Path(python).parent != interpreter.parent
            or not SHOW_IMPORTS.isdisjoint(environment)
            or not all(map(os.path.isabs, python_path))  # the fork server has another working directory
        ):
            return None
        hidden = any(_hides_all(environment.get(name)) for name in GPUS)
        sees_gpus = os.path.exists("/dev/nvidiactl") and not hidden
        folder, tracked = step.code.folder if step.code else os.devnull, self.tracks(step)
        modules = modules_of(programs[0], folder, python_path, sees_gpus=sees_gpus, tracked=tracked)
        if not modules:
            return None
        variables = {name: text for name, text in environment.items() if name not in GPUS or _hides_all(text)}
        return self._find_shared(ForkServerSpec(str(interpreter), tuple(sorted(variables.items())), modules))

    def _find_shared(self, spec: ForkServerSpec) -> ForkServerSpec:
        """Return an earlier spec that has more modules, or else this one."""
        for other in self._specs:
            same = (other.interpreter, other.environment) == (spec.interpreter, spec.environment)
            if same and set(spec.modules) <= set(other.modules):
                return other
        self._specs.append(spec)
        return spec


@cache
def modules_of(
    start: Start, folder: str, python_path: tuple[str, ...], *, sees_gpus: bool, tracked: bool
) -> tuple[str, ...]:
    """Return the modules to import before a program is forked, in order; none if its code does not name torch.

    Look for torch in the whole script, and at the top of the program's own modules that it imports.

    folder:      the working directory of the program
    python_path: the folders in PYTHONPATH of its process
    sees_gpus:   whether its process sees GPUs
    tracked:     whether it has an MLflow run
    """
    program = script_imports.program(start, folder, python_path)
    if not (AT_TOP.search(program.text) or IN_FUNCTION.search(program.script)):
        return ()
    more = [
        module
        for module, pattern in MORE.items()
        if re.search(pattern, program.text) and not (sees_gpus and module in LOOK_FOR_GPUS)
    ]
    return (*TORCH, *more, *(MLFLOW if tracked and re.search(USES_MLFLOW, program.text) else ()))


def _hides_all(value: str | None) -> bool:
    return value is not None and value.strip() in ("", "-1", "none", "void", "NoDevFiles")
