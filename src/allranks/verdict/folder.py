"""Judge a folder of logs, such as those downloaded from Azure ML, without a record of the run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.runs.records import RankRecord, Verdict
from allranks.verdict import judge

_LOG = re.compile(
    r"(?:std_log(?:_process_(?P<process>\d+)|_node_(?P<node>\d+)_\w+)?|70_driver_log(?:_(?P<driver>\d+))?|(?:70_)?mpi_log)\.txt"
)
_RETRY = re.compile(r"retry_(\d+)")


def verdicts(folder: Path) -> list[Verdict]:
    """Return a verdict for each job whose logs below a folder show a failure. A job is named by its folder.

    Raise InputError if there are no logs.
    """
    jobs: dict[Path, dict[int, list[tuple[int, Path]]]] = {}
    try:
        for path in sorted(folder.rglob("*.txt")):
            if name := _LOG.fullmatch(path.name):
                retry = _RETRY.fullmatch(path.parent.name)
                logs = path.parent.parent if retry else path.parent
                job = logs.parent if logs.name in ("user_logs", "azureml-logs", "logs") else logs
                number = int(name["process"] or name["node"] or name["driver"] or 0)
                jobs.setdefault(job, {}).setdefault(int(retry[1]) if retry else 0, []).append((number, path))
    except OSError as error:
        raise InputError(Problem(str(folder), f"it cannot be read: {error.strerror}", "a folder of logs")) from None
    if not jobs:
        expected = "logs of Azure ML: std_log.txt, std_log_process_N.txt or 70_driver_log_N.txt, also in folders below"
        fix = "to download them: az ml job download --name JOB --all"
        raise InputError(Problem(str(folder), "it contains no logs of ranks", expected, fix))
    found = []
    for job, attempts in jobs.items():
        ranks = [RankRecord(number, 0, 0, "", log=str(path)) for number, path in attempts[max(attempts)]]
        verdict = judge.of_ranks(job.resolve().name, ranks, {})
        if verdict is not None:
            found.append(judge.with_advice(replace(verdict, instance_rank=None), {}))
    return found
