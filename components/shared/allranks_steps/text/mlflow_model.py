"""Language models in MLflow's format: their files, and the code that serves them without this project."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def write_mlflow_model(
    model: Path,
    within: str,
    served_by: Path,
    packages: Iterable[str],
    params: Mapping[str, tuple[str, object]] | None = None,
    code: Sequence[str] = (),
) -> None:
    """Make a folder whose files are in place an MLflow model.

    within:    folder of the files in the model, with a config.json
    served_by: the file with the Python model
    packages:  what serving needs
    params:    MLflow's type and the default of each parameter of a model that maps texts to texts; None: no signature
    code:      files of allranks_steps that the Python model imports
    """
    # A progress bar for a few local files is not useful.
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    import mlflow.pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    texts = Schema([ColSpec("string")])
    specs = [ParamSpec(name, kind, default) for name, (kind, default) in (params or {}).items()]
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        # MLflow warns that there is no input example, and no type hints besides the signature.
        warnings.simplefilter("ignore", UserWarning)
        # MLflow copies artifacts. It gets the smallest file, and the others are in place already.
        stub, skeleton, copied = Path(temporary, Path(within).name), Path(temporary, "model"), Path(temporary, "code")
        stub.mkdir()
        shutil.copy(model / within / "config.json", stub)
        for name in code:
            (copied / PACKAGE.name / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PACKAGE / name, copied / PACKAGE.name / name)
        mlflow.pyfunc.save_model(
            skeleton,
            python_model=str(served_by),
            code_paths=[str(copied / PACKAGE.name)] if code else None,
            artifacts={stub.name: str(stub)},
            signature=None if params is None else ModelSignature(texts, texts, ParamSchema(specs)),
            pip_requirements=[*map(_pinned, packages), "mlflow", "pandas"],
        )
        # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
        shutil.copytree(skeleton, model, dirs_exist_ok=True)


def _pinned(name: str) -> str:
    try:
        return f"{name}=={version(name).partition('+')[0]}"
    except PackageNotFoundError:  # tokenizers: training does not need it
        return name
