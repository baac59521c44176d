"""Choose the modules to import before a program is forked: torch, if its code names it, and some that torch uses."""

import re
from functools import cache

from allranks.contract.commands import Start
from allranks.local import script_imports

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
