"""Mask secrets in the logs and reports of an attempt that has ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from allranks.runs.log_redaction import mask_in_file
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import StepRecord


async def mask_logs(recorder: RunRecorder, record: StepRecord, files: Iterable[str]) -> None:
    """Overwrite the secrets in logs and in reports, which are JSON: those of the plan, which what reads the files later
    does not know any more, and texts that look like a secret.

    A file that cannot be changed, or is too large to be searched, is noted in the step's record.
    """
    known = recorder.known | {json.dumps(value)[1:-1] for value in recorder.known}
    for file in files:
        try:
            if not await asyncio.to_thread(mask_in_file, file, known):
                found = "too large to be searched for secrets; they are masked when it is printed"
                recorder.note(record, f"{file}: {found}")
        except OSError as error:
            recorder.note(record, f"{file}: secrets in it could not be masked: {error.strerror}")
