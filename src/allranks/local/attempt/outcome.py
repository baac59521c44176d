"""The status of an attempt whose processes have ended, and the verdict on a failure."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from allranks.history.log_reader import tail
from allranks.history.recorder import RunRecorder
from allranks.history.records import Status, StepRecord, Verdict
from allranks.local.attempt.lifecycle import Limits, State
from allranks.plan.graph import Step
from allranks.text import rank_list
from allranks.verdict import judge, signatures
from allranks.verdict.collectives import Recording, straggler
from allranks.verdict.folder import of_waiting
from allranks.verdict.hangs import of_hang, of_time_out, with_mismatch
from allranks.verdict.rank_stack import Stack
from allranks.verdict.signatures import NOT_STARTED


@dataclass(eq=False)
class Observations:
    """Observations of an attempt that its record does not contain.

    reports:       the report file of each rank
    log:           the log of the launcher's own programs
    stopping:      whether the run is being stopped
    calls:         the collectives of each rank
    arrivals:      the times at which finished ranks arrived in their collectives
    stacks:        the stacks of the ranks when the first one failed or the step was overdue
    stalled:       the verdict on ranks that made no progress
    launcher_failure: how the launcher ended; "" if it did not fail, or its failure does not count
    memory_kills:  the number of processes that the kernel killed for lack of memory during the attempt
    """

    limits: Limits
    reports: Mapping[int, Path]
    log: str
    stopping: bool = False
    calls: Sequence[Recording] = ()
    arrivals: list[Recording] = field(default_factory=list)
    stacks: Sequence[Stack] = ()
    stalled: Verdict | None = None
    launcher_failure: str = ""
    memory_kills: int = 0


def judge_attempt(step: Step, record: StepRecord, recorder: RunRecorder, state: State, facts: Observations) -> None:
    """Set the record's status and, if it failed, its verdict. Add notes on other findings. state: the final one"""
    ranks = record.ranks
    for rank in ranks:
        if rank.status is Status.RUNNING:
            # Killed together with the agent that reports its exit.
            rank.status, rank.ended = Status.CANCELED, rank.ended or time.time()
    verdict = _verdict(record, recorder, state, facts)
    record.status = Status.FAILED if verdict else Status.CANCELED if facts.stopping else Status.COMPLETED
    is_measured = len(ranks) > 1 and (record.status is Status.COMPLETED or state.overdue is not None)
    if is_measured and (found := straggler(facts.calls, ranks) or straggler(facts.arrivals, ranks)):
        record.straggler = found
        recorder.note(record, found)
        verdict = verdict and replace(verdict, consequences=(*verdict.consequences, found))
    record.verdict = verdict
    failed = {rank.rank: raised for rank in ranks if (raised := judge.hidden(rank, facts.reports[rank.rank]))}
    if failed and record.status is Status.COMPLETED and not step.parallel:
        number, raised = min(failed.items(), key=lambda each: each[1].is_consequence)
        ends = "its command hides the failure and exits with 0, so the step completes, as on Azure ML"
        recorder.note(record, f"rank {number} failed with {raised.located}; {ends}")


def _verdict(record: StepRecord, recorder: RunRecorder, state: State, facts: Observations) -> Verdict | None:
    """Return the verdict on the attempt; None if it has not failed."""
    name, ranks = record.name, record.ranks
    verdict, hang = _verdict_on_ranks(record, state, facts), facts.stalled
    if state.overdue is not None and hang is None:
        hang = of_hang(name, ranks, facts.stacks, recordings=facts.calls)
    is_cut_off = state.overdue is not None or state.broken or state.orphaned
    explains = verdict is not None and not (
        (is_cut_off and signatures.depth(verdict.reason) > 0)
        or (state.broken and verdict.reason == judge.KILLED)  # the rank died with its agent
        or (state.orphaned and judge.SILENT in verdict.reason)  # a rank that mpirun had not started yet
    )
    limit = f"stopped after {facts.limits.timeout:g} s, its limits.timeout" if facts.limits.timeout is not None else ""
    if (known := hang or (verdict if explains else None)) is not None:
        if state.starting:
            recorder.note(record, f"{facts.limits.names(state.starting)} {NOT_STARTED}")
        after = (f"the step: {limit}",) if state.overdue is not None else ()
        return replace(known, consequences=(*known.consequences, *after))
    if state.broken:
        return Verdict(name, state.broken)
    if state.overdue is not None:
        said = (f"{rank_list([verdict.rank or 0])}: {verdict.reason}", *verdict.consequences) if verdict else ()
        return replace(_with_log(name, limit, verdict.log if verdict else ranks[0].log), consequences=said)
    if facts.stopping:
        return None
    if facts.launcher_failure:
        never = f"{facts.limits.names(state.starting)} {NOT_STARTED}: " if state.starting else ""
        return _with_log(name, f"{never}{facts.launcher_failure}", facts.log)
    if any(rank.status is not Status.COMPLETED for rank in ranks):
        return _with_log(name, "its processes were killed from outside the run", ranks[0].log)
    return None


def _verdict_on_ranks(record: StepRecord, state: State, facts: Observations) -> Verdict | None:
    """Return the verdict on failed ranks; None if none has failed."""
    ranks = record.ranks
    raised = any(rank.rank in state.raised for rank in ranks if rank.exit_code != 0)
    if not (raised or state.overdue is not None or any(rank.status is Status.FAILED for rank in ranks)):
        return None
    verdict = judge.of_ranks(record.name, ranks, facts.reports, memory_kills=facts.memory_kills)
    if verdict is None:
        return None
    if facts.stacks and signatures.depth(verdict.reason) > 0:
        verdict = of_time_out(verdict, ranks, facts.stacks)
    verdict = with_mismatch(verdict, ranks, facts.calls)
    # The last calls of ranks explain nothing if something else ended some of the ranks.
    calls = () if state.broken or state.orphaned else facts.calls
    return of_waiting(verdict, ranks, calls) if signatures.depth(verdict.reason) > 0 else verdict


def _with_log(name: str, reason: str, log: str) -> Verdict:
    """Return a verdict with the end of a log."""
    return Verdict(name, reason, log=log, tail=tail(log))
