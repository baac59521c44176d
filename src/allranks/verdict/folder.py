"""Judge a folder of logs, such as those downloaded from Azure ML, without a record of the run."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from allranks.contract import logs
from allranks.errors import InputError, Problem
from allranks.history.log_reader import tail
from allranks.history.records import RankRecord, Verdict
from allranks.text import rank_list, shortened
from allranks.verdict import collectives, hangs, judge, rank_stack, signatures, tracebacks
from allranks.verdict.collectives import Recording

_RECORDING = re.compile(r"(?:\w*_)?rank_(?P<rank>\d+)(?:\.(?:json|pickle|pkl))?")
"""A dump of torch's Flight Recorder: nccl_trace_rank_N, or with the runtime flight_recorder/rank_N."""

_LOST_DAEMON = re.compile(
    r"(?s)lost communication with a remote daemon.*?Remote daemon: \[\[\d+,0\],(\d+)\] on node (\S+)"
)
"""orte/mca/errmgr/base/help-errmgr-base.txt: mpirun's daemon 0 is on the first instance."""

_SERVER = re.compile(r"Started server with target: (\S+)$")  # the last line of TensorFlow without a connection

_KEY = re.compile(r"wait timeout after \d+ ?ms, keys: \S*/(\d+)$")
"""The message of torch's store while gloo waits for the address of a rank."""

_FOLDERS = ("user_logs", "azureml-logs", "logs", "outputs", "flight_recorder", "artifacts")
"""Names of folders within the folder of a job."""


def verdicts(folder: Path, note: Callable[[str], None] = lambda _: None) -> list[Verdict]:
    """Return a verdict for each failed job, by the logs and the dumps of torch's Flight Recorder below a folder.

    A job is named after its folder.

    note: called with a message for each dump that cannot be read

    Raise InputError if there are neither logs nor dumps.
    """
    jobs: dict[Path, dict[int, list[tuple[int, Path]]]] = {}
    recordings: dict[Path, list[Recording]] = {}
    unread = []
    try:
        for path in sorted(folder.rglob("*")):
            if numbers := logs.numbers_of(path):
                attempt, number = numbers
                jobs.setdefault(_job_folder(path.parent), {}).setdefault(attempt, []).append((number, path))
            elif (name := _RECORDING.fullmatch(path.name)) and path.is_file():
                recording = collectives.read(path, int(name["rank"]))
                if recording is None:
                    unread.append(path)
                else:
                    recordings.setdefault(_job_folder(path.parent), []).append(recording)
    except OSError as error:
        raise InputError(Problem(str(folder), f"it cannot be read: {error.strerror}", "a folder of logs")) from None
    for path in unread:
        note(f"{path} is not read: it is truncated, or no dump of torch's Flight Recorder")
    if not jobs and not recordings:
        expected = "logs of Azure ML: std_log.txt, std_log_process_N.txt or 70_driver_log_N.txt, or dumps of torch's"
        expected += " Flight Recorder: nccl_trace_rank_N, also in folders below"
        fix = "to download them: az ml job download --name JOB --all"
        raise InputError(Problem(str(folder), "it contains no logs of ranks", expected, fix))
    found = []
    for job in sorted({*jobs, *recordings}):
        attempts = jobs.get(job, {0: []})
        ranks = [RankRecord(number, 0, 0, "", log=str(path)) for number, path in attempts[max(attempts)]]
        verdict = _verdict(job.resolve().name, ranks, recordings.get(job, []))
        if verdict is not None:
            found.append(judge.with_advice(replace(verdict, instance_rank=None)))
    return found


def _job_folder(folder: Path) -> Path:
    """Return the folder of a job, given the folder of one of its files."""
    while folder.name in _FOLDERS or folder.name.startswith("retry_"):
        folder = folder.parent
    return folder


def _verdict(name: str, ranks: Sequence[RankRecord], recordings: Sequence[Recording]) -> Verdict | None:
    """Return the verdict on a job, by the logs and the recordings of its ranks."""
    verdict = judge.of_ranks(name, ranks, {})
    numbers = {rank.rank for rank in ranks}
    unlogged = [RankRecord(each.rank, 0, 0, "") for each in recordings if each.rank not in numbers]
    hang = hangs.of_recordings(name, [*ranks, *unlogged], recordings)
    if hang is None:
        if verdict is None:
            return _mpirun_verdict(name, ranks, None) or _unconnected_servers(name, ranks)
        if signatures.depth(verdict.reason) <= 0 and judge.SILENT not in verdict.reason:
            return verdict
        return _mpirun_verdict(name, ranks, verdict) or of_waiting(verdict, ranks)
    if verdict is None:
        return hang
    if signatures.depth(verdict.reason) == 1:
        said = f"{rank_list([verdict.rank or 0])}: {shortened(verdict.reason)}"
        return replace(hang, consequences=(said, *verdict.consequences))
    return hangs.with_mismatch(verdict, [*ranks, *unlogged], recordings)


def _mpirun_verdict(name: str, ranks: Sequence[RankRecord], verdict: Verdict | None) -> Verdict | None:
    """Return the verdict on an instance that mpirun has lost, or on a killed mpirun; None if neither is known.

    verdict: the verdict by the logs of the ranks
    """
    for rank in ranks:
        if verdict and judge.LOST in verdict.reason and rank.log.endswith("mpi_log.txt") and not tail(rank.log):
            reason = f"mpirun was killed, or its instance was evicted: its log is empty, and ranks {judge.LOST}"
            return Verdict(name, reason, log=rank.log, consequences=verdict.consequences)
        if lost := _LOST_DAEMON.search("\n".join(tracebacks.last_lines(rank.log))):
            reason = f"instance {lost[1]} ({lost[2]}) was evicted or lost: mpirun lost its daemon there"
            return Verdict(name, reason, log=rank.log, tail=tail(rank.log))
    return None


def _unconnected_servers(name: str, ranks: Sequence[RankRecord]) -> Verdict | None:
    """Return the verdict on TensorFlow workers that are all unconnected; None if a worker is connected."""
    started = [_SERVER.search("".join(tail(rank.log, 1))) for rank in ranks]
    if not started or started[0] is None or not all(started):
        return None
    reason = f"every worker waits to be connected with {started[0][1]}, the first address of TF_CONFIG"
    return Verdict(name, reason, log=ranks[0].log, tail=tail(ranks[0].log), code=hangs.CODE)


def of_waiting(verdict: Verdict, ranks: Sequence[RankRecord], recordings: Sequence[Recording] = ()) -> Verdict:
    """Return the verdict on ranks that all gave up waiting, by where they waited; the given verdict if some did not.

    verdict:    blames the first rank that gave up, or a rank whose log is empty
    recordings: of the ranks that have one. A rank with fewer collectives and without an exception ended early
    """
    if signatures.FAILED_TO_PASS.search(verdict.reason):
        return verdict
    found = [(rank, each) for rank in ranks for each in tracebacks.of_lines(tracebacks.last_lines(rank.log))]
    waiting = [rank_stack.of_exception(rank.rank, each) for rank, each in found if each.is_consequence]
    numbers = {stack.number for stack in waiting} | {verdict.rank if verdict.worker is None else verdict.worker}
    late = collectives.missing(recordings)
    if late is not None and late.first.rank not in numbers and len(waiting) == len(found):
        early = hangs.of_recordings(verdict.step, ranks, recordings) or verdict
        return replace(early, consequences=(f"{rank_list([verdict.rank or 0])}: {shortened(verdict.reason)}",))
    if len(waiting) < 2 or judge.LOST in verdict.reason or not all(stack.may_wait for stack in waiting):
        return verdict
    hang = hangs.of_hang(verdict.step, ranks, waiting) or verdict
    if judge.SILENT in verdict.reason:  # it hung, or a launcher ended it before it gave up waiting
        each_other = f"{verdict.reason}, or for each other: {rank_list([hang.rank or 0])} ({hang.where}): {hang.reason}"
        return verdict if hang.rank is None else replace(verdict, reason=each_other)
    if {stack.rank for stack in waiting} != {rank.rank for rank in ranks}:
        return verdict
    said = (f"{rank_list([verdict.rank or 0])}: {shortened(verdict.reason)}",)
    last = max(stack.number for stack in waiting)
    absent = [(rank, each, key[1]) for rank, each in found if (key := _KEY.search(each.text)) and int(key[1]) > last]
    if 0 < len(absent) < len(found):
        rank, each, number = absent[0]
        reason = f"it waits in init_process_group for a rank {number}, and others do not: see its world size"
        blamed = replace(verdict, reason=reason, rank=rank.rank, worker=each.worker, log=rank.log, where=each.where)
        return replace(blamed, traceback="\n".join(each.lines), consequences=said)
    if hang.rank is None:
        why = "they called it with different shapes, types or in another order, or their instances are not connected"
        hang = replace(hang, reason=f"{hang.reason}: {why}")
    return replace(hang, consequences=said)
