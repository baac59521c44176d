"""MLflow's PyTorch flavour, imported without Lightning."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

IMPORT_SECONDS = 60.0
"""Time limit for an import of MLflow in another thread."""

opened = threading.Event()
"""Set while no thread of the runtime is importing MLflow. MLflow has circular imports: if two threads import it at the
same time, they get incomplete modules."""
opened.set()

_LIGHTNING = ("lightning", "pytorch_lightning")


def mlflow_pytorch() -> ModuleType:
    """Import mlflow.pytorch without Lightning, and return it.

    If Lightning is installed, MLflow imports it for autologging, which takes 3 s on every rank and is not used here. If
    Lightning or mlflow.pytorch is already imported, nothing changes. Raise ImportError if MLflow is not installed.
    """
    opened.wait(IMPORT_SECONDS)
    absent = [name for name in _LIGHTNING if name not in sys.modules]
    # Importing a module that is None in sys.modules raises ImportError. MLflow then treats it as not installed.
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import mlflow.pytorch
    finally:
        for name in absent:
            del sys.modules[name]
    return mlflow.pytorch  # type: ignore[no-any-return]


@contextlib.contextmanager
def installed_requirements() -> Iterator[None]:
    """Let MLflow save models without comparing their requirements with what is installed, inside of the block.

    MLflow warns about a model that requires another version. To do so, it reads the file list of every installed
    package, for 1 s or more. That is superfluous if the requirements are the installed versions.
    """
    from mlflow.utils import environment

    compare = getattr(environment, "warn_dependency_requirement_mismatches", None)
    if compare is None:  # another version of MLflow
        yield
        return
    environment.warn_dependency_requirement_mismatches = lambda requirements: None  # noqa: ARG005
    try:
        yield
    finally:
        environment.warn_dependency_requirement_mismatches = compare
