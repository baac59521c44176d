"""Download the logs of a submitted run's ranks, and derive the states of the ranks from them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.azure import runs
from allranks.runs.log_reader import tail
from allranks.runs.records import RankRecord, RunRecord, StepRecord, Verdict

_LOG = re.compile(
    r"user_logs/(?:retry_(?P<retry>\d+)/)?std_log(?:_process_(?P<rank>\d+)|_node_(?P<node>\d+)_\w+)?\.txt"
)


def download_logs(client: Any, record: RunRecord) -> None:
    """Download new parts of the logs of the run's steps, and update their ranks. Raise InputError or AzureError."""
    assert record.submitted is not None
    settled = set(record.submitted.settled)
    for step in record.steps:
        if step.mlflow_run_id is None or step.name in settled:
            continue
        ended = step.status.ended
        found = runs.logs(client, step.reused_from or step.mlflow_run_id)
        exist = runs.download(client, found, Path(step.folder), ended=ended)
        step.ranks = _ranks(step)
        if step.verdict is not None:
            step.verdict = _with_log(step, step.verdict)
        # A log that is listed and cannot be read is requested again by the next command.
        if ended and exist:
            settled.add(step.name)
    complete = record.status.ended and all(step.name in settled or not step.mlflow_run_id for step in record.steps)
    record.submitted = replace(record.submitted, settled=tuple(sorted(settled)), complete=complete)


def _ranks(step: StepRecord) -> list[RankRecord]:
    """Return the ranks of the last attempt, as far as the logs describe them."""
    logs_by_attempt: dict[int, list[tuple[int, str, Path]]] = {}
    folder = Path(step.folder)
    for path in sorted(folder.rglob("*.txt")):
        match = _LOG.fullmatch(path.relative_to(folder).as_posix())
        if match is not None:
            number = int(match["rank"] or match["node"] or 0)
            logs_by_attempt.setdefault(int(match["retry"] or 0), []).append((number, path.name, path))
    if not logs_by_attempt:
        return []
    step.attempt = max(logs_by_attempt)
    per_instance = max(step.process_count_per_instance, 1)
    return [
        RankRecord(
            rank=rank,
            instance_rank=rank // per_instance,
            local_rank=rank % per_instance,
            hostname="",
            status=step.status,
            started=step.started,
            ended=step.ended,
            log=str(path),
        )
        for rank, (_, _, path) in enumerate(sorted(logs_by_attempt[step.attempt]))
    ]


def _with_log(step: StepRecord, verdict: Verdict) -> Verdict:
    """Return the verdict with the tail of the first log that has a traceback, else of the first log."""
    tails = [(rank, tail(rank.log)) for rank in step.ranks]
    if not tails:
        return verdict
    raised = [(rank, lines) for rank, lines in tails if any(line.startswith("Traceback (") for line in lines)]
    rank, lines = (raised or tails)[0]
    known = bool(raised) or len(tails) == 1
    return replace(verdict, rank=rank.rank if known else None, log=rank.log, tail=lines)
