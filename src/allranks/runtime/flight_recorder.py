"""torch's Flight Recorder, which keeps the last collectives and writes them down when one times out."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

from allranks.runtime.notes import note

FOLDER = Path("outputs", "flight_recorder")
"""Azure ML uploads ./outputs as the artifacts of the run."""

FILE_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""The path of the files without the rank at its end: torch's names for it, the current one first."""

DEFAULTS = (
    (("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"), "2000"),
    (("TORCH_NCCL_DUMP_ON_TIMEOUT",), "1"),
)
"""torch's names for the number of collectives to keep, and for whether to write them when one times out; the values are
torch 2.13's defaults, which older ones do not have (FlightRecorder.hpp, ProcessGroupNCCL.hpp)."""


def enable(*, environ: MutableMapping[str, str] = os.environ, folder: Path = FOLDER) -> None:
    """Let NCCL's process groups write the last collectives of a rank to `folder/rank_N` when one times out.

    Call it before the process group starts. Each variable that the user has set stays as it is. Read the files with
    `torchfrtrace FOLDER --prefix rank_`.
    """
    if not any(name in environ for name in FILE_VARIABLES):
        try:
            folder.mkdir(parents=True, exist_ok=True)  # torch does not create it
        except OSError as error:
            note(f"no Flight Recorder: {error}")
            return
        environ[FILE_VARIABLES[0]] = str(folder.absolute() / "rank_")
    for names, value in DEFAULTS:
        if not any(name in environ for name in names):
            environ[names[0]] = value
