"""Read and write models in MLflow's format, and placeholders for models that do not exist."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from allranks.runtime.output_room import full_output_refused
from allranks_steps.json_files import write_json
from allranks_steps.messages import bad_input, first_line

PLACEHOLDER = "no_model.json"
"""The file of a placeholder, because Azure ML's storage holds only files: an empty folder does not exist there."""


def read_mlmodel(folder: Path, where: str = "input model", fix: str = "", flavor: str = "") -> dict[str, Any]:
    """Return the content of MLmodel. Raise InputError if it does not describe a model, which MLflow would register.

    where, fix: for the message
    flavor:     required flavor, such as pytorch
    """
    import yaml

    file = folder / "MLmodel"
    expected = f"a model of MLflow's flavor {flavor}" if flavor else "a model in MLflow's format"
    if not file.is_file():
        raise bad_input(where, f"{folder} holds no file MLmodel", expected, fix)
    try:
        described = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        described = None
    flavors = described.get("flavors") if isinstance(described, dict) else None
    if not isinstance(flavors, dict) or not flavors:
        raise bad_input(where, f"{file} names no flavors, so it describes no model", expected, fix)
    if flavor and flavor not in flavors:
        kinds = ", ".join(kind for kind in flavors if kind != "python_function") or "another kind"
        raise bad_input(where, f"a model of the flavor {kinds}", expected, fix)
    return dict(described)


def load_model(flavor: Any, folder: Path, where: str = "input model", fix: str = "") -> Any:
    """Load a model. Raise InputError if it cannot be loaded.

    flavor:     MLflow's module that loads it, such as mlflow.pyfunc
    where, fix: for the message
    """
    try:
        return flavor.load_model(str(folder))
    except Exception as error:  # loading runs code of the model
        found = f"{folder} cannot be loaded: {first_line(error)}"
        raise bad_input(where, found, "a whole model", fix) from error


@contextmanager
def new_model(output: Path) -> Iterator[Path]:
    """Context manager that yields an empty folder for MLflow to save a model to, and then copies it to the output.

    Raise InputError if a disk is full.
    """
    # A progress bar for local files is not useful.
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    with tempfile.TemporaryDirectory() as temporary:
        with full_output_refused("TMPDIR", Path(temporary)):
            yield Path(temporary)
        with full_output_refused("output model", output):
            # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
            shutil.copytree(temporary, output, dirs_exist_ok=True)


def write_placeholder(folder: Path, reason: str) -> None:
    """Make the folder a placeholder. reason: why there is no model."""
    write_json(folder / PLACEHOLDER, {"reason": reason})


def is_placeholder(folder: Path) -> bool:
    """Return whether the folder is a placeholder for a model that does not exist."""
    return (folder / PLACEHOLDER).is_file()
