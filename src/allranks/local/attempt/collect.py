"""A step's outputs: their final paths and their records."""

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
from allranks.local.attempt.stage import StagedInstance, upload
from allranks.plan import digest
from allranks.plan.digest import KnownDigests
from allranks.plan.file_tree import Stop
from allranks.plan.ports import FILE_TYPES, PRIMITIVES, Output
from allranks.sdk.paths import is_remote
from allranks.text import count

MAX_ARTIFACTS = 1000
"""Maximum number of files below ./outputs in a record."""

RESULT = "outputs/result.txt"
"""The file in which a step that does not use MLflow reports its result, relative to the step's folder."""

MAX_RESULT = 1000
"""Maximum length of a result in characters."""
_MOST_SEARCHED = 32 * 1024 * 1024
"""Maximum bytes of an attempt's logs that are searched for texts that look like secrets."""


def save_path(output: Output, user_path: str | None, folder: Path, name: str) -> Path:
    """Return the final path of an output: the user-defined path if local, else a path in the run's folder.

    user_path: the path that the user set, which may be a template or a URI
    folder:    the folder of the step
    name:      the name of the step's job
    """
    if user_path is not None and not is_remote(user_path):
        return Path(output_path(user_path, name=name, output_name=output.name)).absolute()
    return folder / "named-outputs" / output.name


def save(
    record: StepRecord,
    paths: list[tuple[Output, Path]],
    staged: list[StagedInstance],
    stop: Stop,
    digests: KnownDigests | None = None,
) -> None:
    """Save and record a step's outputs. The step fails if it has not written an output file.

    paths:   each output with its final path
    digests: saved digests, with which unchanged files need not be read again

    Raise OSError if something cannot be read, StoppedError once `stop` is set.
    """
    for instance in staged:
        upload(instance, stop)
    record.outputs = []
    for output, path in paths:
        if output.type in FILE_TYPES and not path.is_file():
            log = record.ranks[0].log
            reason = f"output {output.name} was not written: there is no file {path}"
            record.status = Status.FAILED
            record.verdict = Verdict(record.name, reason, log=log, tail=tail(log))
            return
        record.outputs.append(describe(output, path, stop, digests))
    _list_artifacts(record)


def describe(output: Output, path: Path, stop: Stop | None = None, digests: KnownDigests | None = None) -> OutputRecord:
    """Return the record of an output at its final path, with its digest. Raise the exceptions of `save`."""
    return OutputRecord(output.name, output.type, str(path), _text(output, path), digest.of_path(path, stop, digests))


def record_partial_outputs(record: StepRecord, paths: list[tuple[Output, Path]]) -> None:
    """Record the outputs that a step had written when it failed."""
    record.outputs = [
        OutputRecord(output.name, output.type, str(path), _text(output, path))
        for output, path in paths
        if output.mode != "upload" and (path.is_file() if output.type in FILE_TYPES else path.is_dir())
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


def _text(output: Output, path: Path) -> str | None:
    """Return the text of a primitive without its final newline; None for data."""
    if output.type not in PRIMITIVES:
        return None
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        text = file.read()
    return text[: -2 if text.endswith("\r\n") else -1] if text.endswith("\n") else text


async def mask_logs(recorder: RunRecorder, record: StepRecord, files: Iterable[str]) -> None:
    """Mask secrets in logs and reports: the plan's secrets, which later readers of the files do not know, and texts
    that look like secrets.

    Files that cannot be changed, or that are too large to be searched, are noted in the step's record.
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
