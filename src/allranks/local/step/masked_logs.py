"""Mask a plan's secrets in the logs of an attempt that has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from allranks.runs.log_redaction import mask_in_file
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import StepRecord


async def mask_logs(recorder: RunRecorder, record: StepRecord, logs: Iterable[str]) -> None:
    """Overwrite the secrets of the plan in the logs: what reads them later does not know these secrets any more.

    A log that cannot be changed is noted in the step's record.
    """
    if not recorder.known:
        return
    for log in logs:
        try:
            await asyncio.to_thread(mask_in_file, log, recorder.known)
        except OSError as error:
            recorder.note(record, f"{log}: secrets in it could not be masked: {error.strerror}")
