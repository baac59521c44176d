"""MLflow's flavour for PyTorch, without the library that it takes along."""

from __future__ import annotations

import sys
import threading
from types import ModuleType

IMPORT_SECONDS = 60.0
"""How long an import of MLflow may take before nobody waits for it any more."""

opened = threading.Event()
"""Whether no thread of the runtime is importing MLflow. Two threads that import it at once find half of it: its modules
import each other in a circle."""
opened.set()

_LIGHTNING = ("lightning", "pytorch_lightning")


def mlflow_pytorch() -> ModuleType:
    """mlflow.pytorch, imported without Lightning.

    MLflow imports Lightning, where it is installed, for an autologging that nobody here asks for: 3 s on every rank.
    Where Lightning or mlflow.pytorch has been imported already, nothing is different. Raise ImportError if there is
    no MLflow.
    """
    opened.wait(IMPORT_SECONDS)
    absent = [name for name in _LIGHTNING if name not in sys.modules]
    # To import what stands for None is an ImportError, which MLflow takes for: it is not installed.
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import mlflow.pytorch
    finally:
        for name in absent:
            del sys.modules[name]
    return mlflow.pytorch  # type: ignore[no-any-return]
