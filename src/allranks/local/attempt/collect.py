"""A step's outputs: their final paths, and what is recorded of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from allranks.contract.templating import output_path
from allranks.history.log_reader import tail
from allranks.history.log_redaction import LogLines, mask_in_file
from allranks.history.recorder import RunRecorder
from allranks.history.records import OutputRecord, Status, StepRecord, Verdict
from allranks.local.attempt.stage import Ports, upload
from allranks.plan import digest
from allranks.plan.digest import KnownDigests
from allranks.plan.file_tree import Stop
from allranks.plan.ports import FILE_TYPES, PRIMITIVES, Output
from allranks.sdk.paths import is_remote
from allranks.text import count

MAX_ARTIFACTS = 1000
"""Maximum files below ./outputs in a record."""

RESULT = "outputs/result.txt"
"""The file in which a step that does not use MLflow reports its result, relative to the step's folder."""

MAX_RESULT = 1000
"""Maximum characters of a result."""
_MOST_SEARCHED = 32 * 1024 * 1024
"""Bytes of the logs of an attempt that are searched for texts with the shape of a secret."""


def place_of(output: Output, wanted: str | None, folder: Path, name: str) -> Path:
    """Return the final path of an output: the user-defined path if local, else a path in the run's folder.

    wanted: the path that the user set, which may be a template or a URI
    folder: of the step
    name:   of the step's job
    """
    if wanted is not None and not is_remote(wanted):
        return Path(output_path(wanted, name=name, output_name=output.name)).absolute()
    return folder / "named-outputs" / output.name


def save(
    record: StepRecord,
    places: list[tuple[Output, Path]],
    ports: list[Ports],
    stop: Stop,
    known: KnownDigests | None = None,
) -> None:
    """Save and record a step's outputs. The step fails if it has not written an output file.

    places: each output with its final path
    ports:  of each instance
    known:  digests of files that need not be read again

    Raise OSError if something cannot be read, StoppedError once `stop` is set.
    """
    for instance in ports:
        upload(instance, stop)
    record.outputs = []
    for output, place in places:
        if output.type in FILE_TYPES and not place.is_file():
            log = record.ranks[0].log
            reason = f"output {output.name} was not written: there is no file {place}"
            record.status = Status.FAILED
            record.verdict = Verdict(record.name, reason, log=log, tail=tail(log))
            return
        record.outputs.append(recorded(output, place, stop, known))
    _list_artifacts(record)


def recorded(output: Output, place: Path, stop: Stop | None = None, known: KnownDigests | None = None) -> OutputRecord:
    """Return the record of an output at a place, with its digest. Raise as `save`."""
    return OutputRecord(output.name, output.type, str(place), _text(output, place), digest.of_path(place, stop, known))


def list_left(record: StepRecord, places: list[tuple[Output, Path]]) -> None:
    """Record the outputs that a step wrote without completing."""
    record.outputs = [
        OutputRecord(output.name, output.type, str(place), _text(output, place))
        for output, place in places
        if output.mode != "upload" and (place.is_file() if output.type in FILE_TYPES else place.is_dir())
    ]
    _list_artifacts(record)


def _list_artifacts(record: StepRecord) -> None:
    """Record the files below the step's ./outputs, and the result file among them."""
    folder = Path(record.folder)
    record.artifacts = []
    with contextlib.suppress(OSError):
        if not os.listdir(folder / "outputs"):
            return
    paths = (os.path.join(parent, name) for parent, _, names in os.walk(folder / "outputs") for name in names)
    record.artifacts = sorted(os.path.relpath(path, folder) for path in paths if os.path.isfile(path))[:MAX_ARTIFACTS]
    if (folder / RESULT).is_file():
        with (folder / RESULT).open(encoding="utf-8", errors="replace") as file:
            record.result = file.readline(MAX_RESULT).strip()


def _text(output: Output, place: Path) -> str | None:
    """Return the text of a primitive without its final newline; None for data."""
    if output.type not in PRIMITIVES:
        return None
    with place.open(encoding="utf-8", errors="replace", newline="") as file:
        text = file.read()
    return text[: -2 if text.endswith("\r\n") else -1] if text.endswith("\n") else text


async def mask_logs(recorder: RunRecorder, record: StepRecord, files: Iterable[str]) -> None:
    """Overwrite the secrets in logs and in reports, which are JSON.

    These are the plan's secrets, which are unknown when the files are read later, and texts that look like a
    secret. Files that cannot be changed, or that are too large to be searched, are noted in the step's record.
    """
    left, lines, too_large = _MOST_SEARCHED, LogLines(), []
    for file in files:
        try:
            searched = await asyncio.to_thread(mask_in_file, file, recorder.known, left, lines)
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
