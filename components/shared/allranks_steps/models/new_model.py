"""The folder of a new model in MLflow's format."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from allranks.runtime.output_room import full_output_refused


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
