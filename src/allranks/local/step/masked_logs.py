"""Mask secrets in the logs of an attempt that has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from allranks.runs.log_redaction import mask_in_file
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import StepRecord


async def mask_logs(recorder: RunRecorder, record: StepRecord, logs: Iterable[str]) -> None:
    """Overwrite the secrets in the logs: those of the plan, which what reads the logs later does not know any more, and
    texts that look like a secret.

    A log that cannot be changed, or is too large to be searched, is noted in the step's record.
    """
    for log in logs:
        try:
            if not await asyncio.to_thread(mask_in_file, log, recorder.known):
                recorder.note(
                    record, f"{log}: too large to be searched for secrets; they are masked when it is printed"
                )
        except OSError as error:
            recorder.note(record, f"{log}: secrets in it could not be masked: {error.strerror}")
