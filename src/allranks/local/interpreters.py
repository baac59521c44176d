"""Which Python the processes of a step find: the one made for the step's environment, or else the engine's own.

Frameworks that cannot share a set of packages have an environment each on Azure ML. Here such an environment is a
virtual environment named like it, `.venvs/NAME`, beside the pipeline or in a folder above.
"""

from __future__ import annotations

import sys
from pathlib import Path

from allranks.plan.environment import Environment

FOLDER = ".venvs"


def of_environment(environment: Environment, source: str) -> Path:
    """Return the interpreter of a step's processes, as an absolute path.

    source: the pipeline's file; "" for the current folder
    """
    if environment.interpreter:
        return Path(environment.interpreter)
    own = Path(sys.executable)
    if not environment.name:
        return own
    made = folder_of(environment.name, Path(source).absolute().parent if source else Path.cwd())
    return made / "bin" / "python" if made else own


def folder_of(name: str, start: Path) -> Path | None:
    """Return the virtual environment of that name in `start` or a folder above, None where there is none."""
    made = (folder / FOLDER / name for folder in (start, *start.parents))
    return next((folder for folder in made if (folder / "bin" / "python").exists()), None)


def prefixes(interpreter: Path) -> tuple[str, ...]:
    """Return the folders that an interpreter needs: its own, and that of the Python that a virtual environment is made
    of."""
    folders = [str(interpreter.parent.parent), str(interpreter.resolve().parent.parent)]
    return (*folders, sys.prefix, sys.base_prefix)
