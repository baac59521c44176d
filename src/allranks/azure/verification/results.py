"""What a run of pipelines/verify_workspace.py found: the records of its ranks, and the reports of its steps."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allranks.azure import runs
from allranks.azure.verification import launch_records
from allranks.azure.verification.comparison import Compared, compare
from allranks.errors import InputError, Problem
from allranks.runs.records import RunRecord

RECORDS = {"pytorch": ("record", "records"), "mpi": ("record_mpi", "records_mpi")}
"""By launch, the step that writes the records of its ranks, and the output of the pipeline that they are."""

_REPORTS = ("preflight", "bandwidth", "verification")
"""Outputs of the pipeline that are saved beside the report."""


def compare_runs(client: Any, run: RunRecord, local: RunRecord) -> tuple[Compared, ...]:
    """Compare what the ranks of both runs were given. Differences come first.

    Raise InputError if a run has no records, and AzureError.
    """
    compared: list[Compared] = []
    for launch, (step, output) in RECORDS.items():
        with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
            if not runs.download_output(client, run.id, output, Path(folder)):
                fix = f"see why: allranks logs {run.id} {step}"
                raise InputError(Problem(f"run {run.id}, step {step}", "it wrote no records", "one for each rank", fix))
            mine = launch_records.read(Path(_outputs(local, step)["records"]))
            compared += compare(launch, mine, launch_records.read(Path(folder)))
    return tuple(sorted(compared, key=lambda each: not each.differs))


def save_reports(client: Any, run: RunRecord, folder: Path) -> None:
    """Save what preflight, collectives and the environment's check found into a folder. Raise InputError or AzureError.

    A step that did not complete has none.
    """
    for output in _REPORTS:
        with tempfile.TemporaryDirectory(prefix="allranks-") as temporary:
            if runs.download_output(client, run.id, output, Path(temporary)):
                folder.mkdir(parents=True, exist_ok=True)
                for path in sorted(path for path in Path(temporary).rglob("*") if path.suffix in (".json", ".svg")):
                    shutil.copyfile(path, folder / path.name)


def _outputs(run: RunRecord, step: str) -> Mapping[str, str]:
    return {output.name: output.path for record in run.steps if record.name == step for output in record.outputs}
