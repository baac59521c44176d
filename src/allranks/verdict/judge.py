"""Judge a failed step: which rank failed first, why, what followed from it, and what to do."""

import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.contract import report
from allranks.history.log_reader import tail
from allranks.history.records import RankRecord, Status, Verdict
from allranks.text import in_bytes, rank_list, shortened
from allranks.verdict import signatures, tracebacks
from allranks.verdict.tracebacks import Raised

_NATIVE = 30
"""Number of last lines of a log that are searched for a signature if there is no traceback."""

SILENT = "its log ends without an exception"
LOST = "lost the connection"  # what the others did, in the same reason, unless they waited

_SHELL = 128
"""The exit code of a shell whose command was ended by a signal is this number plus that of the signal."""


@dataclass(frozen=True)
class Symptom:
    """How one process of a step failed.

    worker:  its rank as counted by a launcher that the rank started, such as torchrun; None without one
    order:   the key that sorts the cause before its consequences: the distance from the cause, whether only an exit
             code is known, the time, whether a launcher saw it later
    raised:  its exception; None if unknown
    """

    rank: RankRecord
    reason: str
    worker: int | None
    order: tuple[int, bool, float, bool]
    raised: Raised | None = None

    @property
    def number(self) -> int:
        """The rank, as counted by the launcher if there is one."""
        return self.rank.rank if self.worker is None else self.worker


def of_ranks(
    step: str, ranks: Sequence[RankRecord], reports: Mapping[int, Path], *, memory_kills: int = 0
) -> Verdict | None:
    """Return the verdict on a step whose ranks have ended or are being ended; None if no rank shows a failure.

    A failed rank makes the others fail within milliseconds ("Connection closed by peer"). The verdict names the first
    rank whose failure does not follow from that of another one, by the time in its report, or else by the time of its
    exit. If ranks are launchers, it names their worker. A rank that was ended from outside counts only if its log shows
    an earlier failure.

    reports:      the report file of each rank
    memory_kills: number of processes that the kernel killed for lack of memory during the attempt
    """
    symptoms = sorted(
        (symptom for rank in ranks for symptom in _symptoms_of_rank(rank, reports.get(rank.rank), memory_kills)),
        key=lambda symptom: symptom.order,
    )
    raised_by = {symptom.number for symptom in symptoms if symptom.raised}
    # The exception in the log of a rank explains more than the exit code that its launcher reports.
    symptoms = [each for each in symptoms if each.raised or not (each.order[1] and each.number in raised_by)]
    if not symptoms:
        return None
    first = symptoms[0]
    if first.order[0] > 0:
        missing = _unarrived(ranks, symptoms) or _ended_early(ranks, reports, first) or _terminated(symptoms)
        first = missing or _first_silent(ranks, symptoms) or first
    rank, raised = first.rank, first.raised
    last = tail(rank.log)
    return Verdict(
        step,
        first.reason,
        rank=rank.rank,
        instance_rank=rank.instance_rank,
        exit_code=rank.exit_code,
        signal=rank.signal,
        log=rank.log,
        tail=raised.lines if raised and raised.lines and raised.lines[-1] not in last else last,
        traceback="\n".join(raised.lines) if raised else "",
        worker=None if first.worker == rank.rank else first.worker,
        where=raised.where if raised else "",
        consequences=_consequences([each for each in symptoms if each.rank is not rank or each.worker != first.worker]),
    )


def _unarrived(ranks: Sequence[RankRecord], symptoms: Sequence[Symptom]) -> Symptom | None:
    """Return the symptom of the rank that another rank names because it did not reach monitored_barrier; None if none
    is named, or if a launcher counts the ranks."""
    for symptom in symptoms:
        named = signatures.FAILED_TO_PASS.search(symptom.reason)
        rank = next((each for each in ranks if named is not None and each.rank == int(named["rank"])), None)
        if named is not None and rank is not None and symptom.worker in (None, symptom.rank.rank):
            return Symptom(rank, f"{named[0]}, says {rank_list([symptom.number])}", None, symptom.order)
    return None


def _ended_early(ranks: Sequence[RankRecord], reports: Mapping[int, Path], lost: Symptom) -> Symptom | None:
    """Return the symptom of the first rank that completed while others lost their connection to it, for example because
    it has fewer batches. It closes its connections before it exits, so that the others notice first. A rank that
    handled the loss of another one has not ended early."""
    if lost.raised is not None and lost.raised.is_foreign:
        return None
    for rank in sorted(ranks, key=lambda rank: rank.ended or 0.0):
        if rank.status is Status.COMPLETED:
            after = hidden(rank, reports.get(rank.rank))
            if after is None or not after.is_consequence:
                said = f" after {after.text}" if after else ""
                how = f"it ended with exit code 0{said}, and others still waited for it"
                return Symptom(rank, how, None, lost.order, after)
    return None


def _terminated(symptoms: Sequence[Symptom]) -> Symptom | None:
    """Return the symptom of the first rank to end, if SIGTERM ended it: the signal did not follow from the others."""
    ended = [each for each in symptoms if each.rank.status is Status.FAILED and each.rank.ended]
    first = min(ended, key=lambda each: each.rank.ended or 0.0, default=None)
    return first if first is not None and first.reason == _TERMINATED else None


def hidden(rank: RankRecord, reported: Path | None) -> Raised | None:
    """Return the exception that ended a program of a rank whose command still ended with exit code 0; None if unknown.

    The program has reported it, or the log ends with it.
    """
    for failure in report.read(reported)[0] if reported else ():
        if isinstance(failure, report.Failure):
            return _reported_exception(failure)
    if not tracebacks.is_exception("".join(tail(rank.log, 1))):
        return None  # the usual case, without reading the log
    lines = list(filter(str.strip, tracebacks.last_lines(rank.log)))
    found = _at_the_end(tracebacks.of_lines(lines), lines, 1)
    return next((each for each in found if not each.aside), None)


def _first_silent(ranks: Sequence[RankRecord], symptoms: Sequence[Symptom]) -> Symptom | None:
    """Return the symptom of the first rank whose log has no exception and whose exit is unknown, while others lost
    their connection to a rank or waited for it."""
    unhappy = {symptom.rank.rank for symptom in symptoms}
    silent = {rank.rank: rank for rank in ranks if rank.status is Status.NOT_STARTED and rank.rank not in unhappy}
    if not silent:
        return None
    if symptoms[0].reason == _TERMINATED:  # mpirun names the rank that ended before it ended the others
        return replace(symptoms[0], reason="SIGTERM ended it: its instance was evicted, or the job was canceled")
    first, *more = sorted(silent)
    others = rank_list(sorted({symptom.number for symptom in symptoms}))
    like = f", like that of {rank_list(more)}" if more else ""
    # Several ranks that end without an exception were probably on the same instance.
    killed = "they were killed, or their instance was evicted" if more else "killed, or evicted"
    how = "waited for it" if symptoms[0].order[0] == 1 else f"{LOST}: {killed}"
    if "heartbeats" in symptoms[0].reason:  # a program that hangs still sends them
        how = "got no heartbeats: killed, evicted, stopped or cut off"
    reason = f"{SILENT}{like}, and {others} {how}"
    return Symptom(silent[first], reason, None, symptoms[0].order)


_INSTALLS = re.compile(
    r"No matching distribution|Could not find a version|CondaHTTPError|CondaSSLError|Unable to locate package"
    r"|Failed to fetch|Request failed after"
)
"""What pip, conda, apt and uv print when they cannot install a package."""


def with_advice(
    verdict: Verdict,
    of_step: Callable[[signatures.Known], tuple[str, str] | None] = lambda _: None,
    *,
    isolated: bool | None = None,
) -> Verdict:
    """Return the verdict with the code and the advice of its signature, if one matches.

    of_step:  returns the code and the advice that depend on the step; None for other signatures
    isolated: whether the instances have a network of their own; None if unknown
    """
    known = signatures.find([verdict.reason], isolated=isolated, traceback=verdict.traceback)
    if known is None and not verdict.where:
        known = signatures.find(verdict.tail[-_NATIVE:], isolated=isolated)
        if known is not None and known.signature.depth > 0:
            return verdict  # the last lines do not explain the end
    if known is None:
        return verdict
    if known.signature.code == signatures.NO_NETWORK and any(_INSTALLS.search(line) for line in verdict.tail):
        text = f"{verdict.reason}: it installs packages, and its instances have no way out to the network"
        verdict = replace(verdict, reason=text)
    advice = known.signature.advice.format(**known.match.groupdict())
    code, advice = of_step(known) or (known.signature.code, advice)
    return replace(verdict, code=code, advice=advice)


def _symptoms_of_rank(rank: RankRecord, reported: Path | None, memory_kills: int) -> list[Symptom]:
    """Return how a rank failed: its own process, or those that it launched."""
    if rank.status is Status.COMPLETED:
        return []
    first: dict[int | None, tuple[Raised, float]] = {}
    said: Raised | None = None
    for failure in report.read(reported)[0] if reported else ():
        if isinstance(failure, report.Failure):
            raised = _reported_exception(failure)
            if not raised.is_wrapper:
                first.setdefault(failure.rank, (raised, failure.time))
            elif rank.exit_code == 1 and failure.type == "SystemExit" and "exit code" not in failure.message:
                said = replace(raised, text=f"exit code 1: {failure.message}")
    lines = tracebacks.last_lines(rank.log)
    table = tracebacks.launcher_table(lines)
    symptoms = [_exception_symptom(rank, raised, time) for raised, time in first.values()]
    is_killed = rank.status is not Status.CANCELED and rank.signal in {each.name for each in _CAUSES}
    if is_killed and not {None, rank.rank}.issuperset(first):
        # The workers of a killed launcher may lose each other before they are ended.
        symptoms.append(_exit_symptom(rank, (), lines, memory_kills))
    if table is None:
        return symptoms or _log_symptoms(rank, said, lines, memory_kills)
    found = (replace(each, worker=table.rank) if each.worker is None else each for each in tracebacks.of_lines(lines))
    # The worker that the launcher saw first comes first, unless its exception is a consequence.
    symptoms = symptoms or [
        _exception_symptom(rank, each, table.time, later=each.worker != table.rank) for each in found
    ]
    return [*symptoms, *_worker_symptoms(rank, table, lines, {each.worker for each in symptoms})]


def _log_symptoms(rank: RankRecord, said: Raised | None, lines: Sequence[str], memory_kills: int) -> list[Symptom]:
    """Return the symptoms of a rank that is not a launcher and has reported no exception.

    said:  the SystemExit with which the rank ended itself; None if there is none
    lines: the end of its log
    """
    found, ended = tracebacks.of_lines(lines), _end(rank)
    at_the_end = _at_the_end(found, lines)
    if rank.status is Status.CANCELED or (rank.exit_code is None and rank.signal is None):
        # It was ended from outside, or still runs.
        known = None if at_the_end or rank.status is Status.CANCELED else signatures.find(lines[-_NATIVE:])
        if known is not None and known.signature.depth <= 0:
            at_the_end = [Raised(known.match.string.strip())]
        return [_exception_symptom(rank, each, ended) for each in at_the_end]
    if rank.signal is not None or _is_shell_code(rank.exit_code, lines):
        return [_exit_symptom(rank, found, lines, memory_kills)]
    # After an exception, Python exits with code 1. With another code, the exception was handled.
    if found and (rank.exit_code == 1 or any(each.is_consequence for each in at_the_end)):
        return [_exception_symptom(rank, each, ended) for each in found]
    if said is not None:
        return [_exception_symptom(rank, said, ended)]
    return [_exit_symptom(rank, _at_the_end(found, list(filter(str.strip, lines)), 1), lines, memory_kills)]


def _worker_symptoms(
    rank: RankRecord, table: tracebacks.LauncherTable, lines: Sequence[str], known: Set[int | None]
) -> Iterator[Symptom]:
    """Yield the symptoms of a launcher's workers by their exit codes. known: the workers that already have symptoms"""
    if table.rank not in known:
        reason = _ending(table.exit_code if table.exit_code >= 0 else _SHELL - table.exit_code)
        signature = signatures.find(lines) if reason == "ended by SIGABRT" else None
        if signature is not None and signature.signature.depth <= 0:
            reason = signature.match.string.strip()
        order = (2 * (reason == _TERMINATED), table.exit_code > 0, table.time, False)
        yield Symptom(rank, reason, table.rank, order)
    # The launcher polls: it may find a worker that was killed, or has exited, together with one that lost the
    # connection to it. After an exception, Python exits with code 1.
    for worker, code in table.others.items():
        if -code in _CAUSES or (1 < code < _SHELL and worker not in {*known, table.rank}):
            how = _ending(code if code > 0 else _SHELL - code)
            yield Symptom(rank, how, worker, (0, code > 0, table.time, True))


def _at_the_end(found: Sequence[Raised], lines: Sequence[str], count: int = _NATIVE) -> list[Raised]:
    """Return the exceptions at the end of a log. Earlier ones may have been handled."""
    end = [line.strip() for line in lines[-count:]]
    return [each for each in found if any(line.endswith(each.lines[-1].strip()) for line in end)]


KILLED, _TERMINATED = "ended by SIGKILL", "ended by SIGTERM"

_CAUSES = (signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
"""Signals that do not follow from the failure of another rank."""


def _exit_symptom(rank: RankRecord, found: Sequence[Raised], lines: Sequence[str], memory_kills: int) -> Symptom:
    """Return the symptom of a rank whose exit explains more than its exceptions, or that has none."""
    code, ended = rank.exit_code or 0, _end(rank)
    reason = _ending(code) if _is_shell_code(code, lines) else f"exit code {code}"
    if rank.signal:
        reason = f"ended by {rank.signal}"
    handled = {each.lines[-1].strip() for each in tracebacks.of_lines(lines)} if code > 1 else set()
    known = signatures.find(line for line in lines[-_NATIVE:] if line.strip() not in handled)
    follows = signatures.depth(known.match.string) if known is not None else 0
    if reason == KILLED:
        follows = 0
        if memory_kills:
            memory = f", after {in_bytes(rank.peak_memory)} in use" if rank.peak_memory else ""
            reason = f"{signatures.KERNEL_OUT_OF_MEMORY}{memory}"
    elif found and (reason == "ended by SIGABRT" or (reason == _TERMINATED and _at_the_end(found, lines))):
        return _exception_symptom(rank, found[0], ended)
    elif known is not None and follows <= 0 and (reason == "ended by SIGABRT" or reason.startswith("exit code")):
        reason = known.match.string.strip()
    elif found and reason.startswith("exit code"):
        return Symptom(rank, f"{reason}, after {found[-1].text}", None, (0, True, ended, False), found[-1])
    follows = follows or 2 * (reason == _TERMINATED)
    return Symptom(rank, reason, None, (follows, reason.startswith("exit code"), ended, False))


def _end(rank: RankRecord) -> float:
    return rank.ended or rank.started or 0.0


def _exception_symptom(rank: RankRecord, raised: Raised, time: float, *, later: bool = False) -> Symptom:
    depth = min(signatures.depth(raised.text), 1) if raised.is_foreign else signatures.depth(raised.text)
    return Symptom(rank, raised.text, raised.worker, (depth, False, time, later), raised)


def _reported_exception(failure: report.Failure) -> Raised:
    """Return the exception that a rank has reported."""
    message = next(iter(failure.message.strip().splitlines()), "")
    text = f"{failure.type}: {message}" if message else failure.type
    found = tracebacks.of_text(failure.traceback)
    if found is not None and tracebacks.is_header(text):
        text = found.text
    lines = tuple(failure.traceback.splitlines())
    if found is None:
        return Raised(text, "", lines, failure.rank)
    if found.is_consequence or not Raised(text).is_consequence:
        return Raised(text, found.where, lines, failure.rank)
    return replace(found, lines=lines, worker=failure.rank)


def _consequences(symptoms: Sequence[Symptom]) -> tuple[str, ...]:
    """Return a line for each reason of the other ranks, with the ranks that have it."""
    groups: dict[str, list[Symptom]] = {}
    for symptom in symptoms:
        known = signatures.find([symptom.reason])
        groups.setdefault(known.signature.code if known else symptom.reason, []).append(symptom)
    return tuple(
        f"{rank_list(sorted({each.number for each in group}))}: {shortened(group[0].reason)}"
        for group in groups.values()
    )


def aborted_after_its_work(rank: RankRecord, code: int, pid: int | None, reported: Path) -> bool:
    """Return whether gloo aborted the rank at its exit, after it had finished its work, which is not a failure.

    pid:      of the rank's own process
    reported: the report file of the rank

    Only the report of this process counts: the log may show an abort during the work, and another program of the
    command may have finished.
    """
    if code != -signal.SIGABRT or not any(signatures.GLOO_ABORT in line for line in tail(rank.log, 2)):
        return False
    return any(isinstance(event, report.Finished) and event.pid == pid for event in report.read(reported)[0])


def signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGKILL for 9; "signal 99" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how(program: str, code: int) -> str:
    """Return a sentence about the end of a program; "" for exit code 0."""
    if not code:
        return ""
    return f"{program} was ended by {signal_name(-code)}" if code < 0 else f"{program} ended with exit code {code}"


_SHELL_MESSAGES = {
    _SHELL + number: signal.strsignal(number) or "" for number in (*_CAUSES, signal.SIGABRT, signal.SIGTERM)
}
"""The message of a shell whose command was ended by a signal, by the exit code of the shell."""


def _is_shell_code(code: int | None, lines: Sequence[str]) -> bool:
    """Return whether an exit code is that of a shell for a signal, not one that the program chose."""
    said = _SHELL_MESSAGES.get(code or 0)
    return said is not None and any(said in line for line in lines[-_NATIVE:])


def _ending(code: int) -> str:
    """Return how a rank ended by its exit code, which may be that of a shell for a signal."""
    return f"ended by {signal_name(code - _SHELL)}" if code in _SHELL_MESSAGES else f"exit code {code}"
