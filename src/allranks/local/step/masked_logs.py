"""Mask secrets in the logs and reports of an attempt that has ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from allranks.runs.formatting import count
from allranks.runs.log_redaction import mask_in_file
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import StepRecord

MOST_SEARCHED = 32 * 1024 * 1024
"""Bytes of the logs of an attempt that are searched for texts with the shape of a secret."""


async def mask_logs(recorder: RunRecorder, record: StepRecord, files: Iterable[str]) -> None:
    """Overwrite the secrets in logs and in reports, which are JSON.

    These are the plan's secrets, which are not known any more when the files are read later, and texts that look like a
    secret. Files that cannot be changed, or that are too large to be searched, are noted in the step's record.
    """
    known = recorder.known | {json.dumps(value)[1:-1] for value in recorder.known}
    left, too_large = MOST_SEARCHED, []
    for file in files:
        try:
            searched = await asyncio.to_thread(mask_in_file, file, known, left)
        except OSError as error:
            recorder.note(record, f"{file}: secrets in it could not be masked: {error.strerror}")
            continue
        if searched is None:
            too_large.append(file)
        else:
            left -= searched
    if too_large:
        others = f" and {count(len(too_large) - 1, 'other log')}" if len(too_large) > 1 else ""
        found = "too large to be searched for secrets that the plan does not name; they are masked when printed"
        recorder.note(record, f"{too_large[0]}{others}: {found}")
