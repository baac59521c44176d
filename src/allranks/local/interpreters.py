"""Which Python the processes of a step find: the one made for the step's environment, or else the engine's own.

Frameworks that cannot share a set of packages have an environment each on Azure ML. Here such an environment is a
virtual environment named like it, `.venvs/NAME`, beside the pipeline or in a folder above.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from allranks.plan.graph import Plan, Step

FOLDER = ".venvs"

_NAME = re.compile(r"azureml://registries/[^/]+/environments/(?P<registered>[^/]+)|(?:azureml:)?(?P<name>[\w.-]+)")


def environment_name(environment: str) -> str:
    """The name in what a step says of its environment: torch for `azureml:torch:3`, `torch:3, image ubuntu`; "" where
    it has none."""
    if environment.startswith(("image ", "conda ", "build ")):
        return ""
    match = _NAME.match(environment)
    return (match["registered"] or match["name"]) if match else ""


def of_step(plan: Plan, step: Step) -> Path:
    """The interpreter of a step's processes, as an absolute path."""
    if step.interpreter:
        return Path(step.interpreter)
    own = Path(sys.executable)
    name = environment_name(step.environment)
    if not name:
        return own
    made = folder_of(name, Path(plan.source).absolute().parent if plan.source else Path.cwd())
    return made / "bin" / "python" if made else own


def folder_of(name: str, start: Path) -> Path | None:
    """The virtual environment of that name in `start` or a folder above, None where there is none."""
    made = (folder / FOLDER / name for folder in (start, *start.parents))
    return next((folder for folder in made if (folder / "bin" / "python").exists()), None)


def prefixes(interpreter: Path) -> tuple[str, ...]:
    """The folders that an interpreter needs: its own, and that of the Python that a virtual environment is made of."""
    folders = [str(interpreter.parent.parent), str(interpreter.resolve().parent.parent)]
    return (*folders, sys.prefix, sys.base_prefix)
