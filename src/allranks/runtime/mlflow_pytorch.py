"""MLflow's flavour for PyTorch, without the library that it takes along."""

from __future__ import annotations

import sys
from types import ModuleType

_LIGHTNING = ("lightning", "pytorch_lightning")


def mlflow_pytorch() -> ModuleType:
    """mlflow.pytorch, imported without Lightning.

    MLflow imports Lightning, where it is installed, for an autologging that nobody here asks for: 3 s on every rank.
    Where Lightning or mlflow.pytorch has been imported already, nothing is different. Raises ImportError where there is
    no MLflow.
    """
    absent = [name for name in _LIGHTNING if name not in sys.modules]
    # To import what stands for None is an ImportError, which MLflow takes for: it is not installed.
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import mlflow.pytorch
    finally:
        for name in absent:
            del sys.modules[name]
    return mlflow.pytorch  # type: ignore[no-any-return]
