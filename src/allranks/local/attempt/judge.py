"""Determine which rank of a step failed first, and why, from the exits, the ranks' own reports, and the logs."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from allranks.contract import report
from allranks.local import stacks
from allranks.local.attempt import worker_failures
from allranks.runs.log_reader import tail
from allranks.runs.records import RankRecord, Status, Verdict

GLOO_ABORT = "terminate called without an active exception"
"""Printed by libstdc++ if torch's gloo threads still exist while the interpreter shuts down (seen with torch 2.13)."""

NOT_STARTED = "did not start"
"""In the reason of a verdict about an instance."""


def aborted_after_its_work(rank: RankRecord, code: int, pid: int | None, reported: Path) -> bool:
    """Return whether the rank finished its work and gloo then aborted it during its exit, which is not a failure.

    pid:      of the rank's own process
    reported: the report file of the rank

    Only the report of this process counts. The log may show the same abort during the work, and a command may start
    several programs, of which another one has finished.
    """
    if code != -signal.SIGABRT or not any(GLOO_ABORT in line for line in tail(rank.log, 2)):
        return False
    events, _ = report.read(reported)
    return any(isinstance(event, report.Finished) and event.pid == pid for event in events)


def hint(verdict: Verdict, *, isolated: bool) -> str:
    """Return advice on a failure that emulated instances or a missing library typically cause; an empty text for
    others."""
    for line in verdict.tail:
        missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", line)
        if missing and missing[1] in stacks.BY_MODULE:
            install = stacks.BY_MODULE[missing[1]].install
            return _advice(f"the Python of this step has no {missing[1]}; to get it: {install}", code="missing-package")
    # A shell turns the signal into exit code 134.
    aborted = verdict.signal == "SIGABRT" or verdict.exit_code == 128 + signal.SIGABRT
    if aborted and any(GLOO_ABORT in line for line in verdict.tail[-2:]):
        return _advice(
            "torch's gloo may abort a process that exits, also after its work; this rank did not report that its work"
            " was done. To exit without the abort: python -m allranks.runtime SCRIPT",
            code="aborted-at-exit",
        )
    if NOT_STARTED in verdict.reason:
        return _advice(
            "the step needs all its instances, and one did not start its processes; if this machine is overloaded, use"
            " fewer instances or a longer --start-timeout",
            code="missing-instance",
        )
    if any(report.tells_of_full_disk(line) for line in (verdict.reason, *verdict.tail)):
        return _advice(
            "a disk was full, or a quota reached, while the rank wrote a file; the traceback shows which one",
            code="disk-full",
        )
    unreachable = ("Network is unreachable", "Name or service not known", "No route to host")
    if isolated and any(sign in line for line in verdict.tail for sign in unreachable):
        return _advice(
            "an instance of the rack reaches only the other instances: to download, use --instances loopback",
            code="no-network",
        )
    if not isolated and any("AF_UNIX path" in line for line in verdict.tail):
        return _advice(
            "the temporary folder's path is too long for a socket in it: set TMPDIR to a shorter one, as /tmp is",
            code="long-temporary-path",
        )
    return ""


def _advice(text: str, *, code: str) -> str:
    return f"{text}. More: allranks explain {code}"


def signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGKILL for 9; "signal 99" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how(program: str, code: int) -> str:
    """Return how a program ended; an empty text for exit code 0."""
    if not code:
        return ""
    return f"{program} was ended by {signal_name(-code)}" if code < 0 else f"{program} ended with exit code {code}"


def of_ranks(step: str, ranks: list[RankRecord], reports: dict[int, Path]) -> Verdict:
    """Return the verdict on a step with a failed rank.

    A failed rank makes the others fail within milliseconds ("Connection closed by peer"), so the verdict names the rank
    that failed first, by the time in its report, or else by the time of its exit. If the ranks are launchers, it names
    the worker that failed first.

    reports: the report file of each rank
    """
    failures = {rank: failure for rank, path in reports.items() if (failure := _failure(path)) is not None}
    failed = [rank for rank in ranks if rank.status is Status.FAILED]
    first = min(failed, key=lambda rank: failures[rank.rank].time if rank.rank in failures else rank.ended or 0.0)
    failure = failures.get(first.rank)
    workers = {} if failures else {rank.rank: found for rank in failed if (found := worker_failures.of_log(rank.log))}
    worker = None
    if workers:
        first = min((rank for rank in failed if rank.rank in workers), key=lambda rank: workers[rank.rank].order)
        worker = workers[first.rank]
    if worker is not None and worker.exception:
        reason = worker.exception
    elif failure is not None:
        reason = f"{failure.type}: {failure.message}" if failure.message else failure.type
    elif first.signal is not None:
        reason = f"ended by {first.signal}"
    else:
        reason = f"exit code {first.exit_code}"
    return Verdict(
        step,
        reason.strip().splitlines()[0],
        first.rank,
        first.instance_rank,
        first.exit_code,
        first.signal,
        first.log,
        tuple(worker.traceback) if worker and worker.exception else tail(first.log),
        failure.traceback if failure else "\n".join(worker.traceback) if worker else "",
        worker.rank if worker else None,
    )


def _failure(path: Path) -> report.Failure | None:
    events, _ = report.read(path)
    return next((event for event in events if isinstance(event, report.Failure)), None)
