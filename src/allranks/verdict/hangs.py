"""Judge a step that hangs by the stacks of its ranks: which wait in a collective, and which one is missing."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from allranks.history.records import RankRecord, Status, Verdict
from allranks.text import rank_list, shortened
from allranks.verdict import collectives, signatures, tracebacks
from allranks.verdict.collectives import Call, Difference, Recording
from allranks.verdict.rank_stack import Stack

CODE = "collective-timeout"
"""The section of docs/reference/troubleshooting.md."""

MISMATCH = "collective-mismatch"

ADVICE = "every rank must call the same collectives, as often and in the same order: see where this rank is"
IF_SLOW = "; if it is only slow, choose a longer --stall"
ADVICE_ON_MISMATCH = "every rank must call the same collectives in the same order, with the same sizes and types"

_JOINED = (
    ({"world_size"}, "joins a process group with world size", "with", "pass the same world size"),
    ({"hostname", "port"}, "joins a process group at", "at", "have the same MASTER_ADDR and MASTER_PORT"),
)
"""What ranks must share while they join a process group: names in `Stack.settings`, the texts, the advice."""

_SIZES = re.compile(r"op\.preamble\.length <= op\.nbytes\. (\d+) vs (\d+)")
"""gloo/transport/tcp/pair.cc"""


@dataclass(frozen=True)
class Hang:
    """A step whose ranks make no progress.

    waiting:  ranks that wait for others
    calls:    last collective of each rank that has a recording
    late:     collective that some ranks have not called; None if all have called the same ones
    behind:   ranks that have not called it
    groups:   ranks that may wait, by the line at which they wait
    duration: time without progress, for messages; "" if unknown
    """

    step: str
    ranks: Sequence[RankRecord]
    stacks: Sequence[Stack]
    waiting: Sequence[Stack]
    recordings: Sequence[Recording]
    duration: str

    @cached_property
    def calls(self) -> Mapping[int, Call]:
        return {recording.rank: recording.calls[-1] for recording in self.recordings if recording.calls}

    @cached_property
    def late(self) -> Difference | None:
        return collectives.missing(self.recordings)

    @cached_property
    def behind(self) -> list[Stack]:
        return [stack for stack in self.stacks if self.late is not None and stack.number in self.late.ranks]

    @cached_property
    def groups(self) -> list[list[Stack]]:
        return _groups([stack for stack in self.stacks if stack.may_wait])

    @cached_property
    def lost(self) -> tuple[Call, Sequence[Stack]] | None:
        """A collective that all ranks have called and in which some still wait, and these ranks: messages are lost."""
        late = self.late
        if late is None or not collectives.have_all_called(late.call, self.recordings):
            return None
        is_waited_for = any(stack.collective and stack.where == late.call.where for stack in self.behind)
        return (late.call, self.behind) if is_waited_for else None

    @property
    def others_wait(self) -> str:
        """The state of the waiting ranks, such as ``ranks 1-3 wait for it in all_reduce for 300 s``."""
        names = " or ".join(
            dict.fromkeys(_collective_text(stack, self.calls) or stack.computation for stack in self.waiting)
        )
        verb = "wait" if len(self.waiting) > 1 else "waits"
        return f"{_rank_numbers(self.waiting)} {verb} for it in {names}{self.duration}"

    def blaming(self, first: Stack, reason: str) -> Verdict:
        """Return the verdict that blames a rank."""
        made = _verdict_on(self.step, self.ranks, first, reason)
        consequences = _consequences(self.groups, first)
        return replace(made, consequences=consequences, advice=made.advice + IF_SLOW * bool(self.duration))


def of_hang(
    step: str,
    ranks: Sequence[RankRecord],
    stacks: Sequence[Stack],
    seconds: float = 0,
    recordings: Sequence[Recording] = (),
) -> Verdict | None:
    """Return the verdict on a step whose ranks make no progress; None if no rank waits for another.

    seconds:    time without progress; 0 if unknown
    recordings: of the ranks that have one, including those that have ended

    The rank to blame is the one that is not in the collective: it runs other code, or has ended. If all wait, it is one
    that has called fewer collectives, or that waits at another line than most. If messages are lost, no rank is to
    blame.
    """
    if not stacks:
        return of_recordings(step, ranks, recordings)
    duration = f" for {seconds:.0f} s" if seconds else ""
    hang = Hang(step, ranks, stacks, _waiting(stacks), recordings, duration)
    if all(each.is_exiting for each in stacks) and (verdict := _waiting_for_thread(hang)) is not None:
        return verdict
    # A task of Ray that computes does not hang.
    if not hang.waiting or any(each.is_of_ray and not (each.is_idle or each.is_stopped) for each in stacks):
        return None
    return next(filter(None, (rule(hang) for rule in _RULES)))


def _waiting(stacks: Sequence[Stack]) -> list[Stack]:
    """Return the ranks that wait for others in a collective; else those in a computation, if all are idle or one runs
    other code."""
    if waiting := [stack for stack in stacks if stack.collective]:
        return waiting
    computations_wait = all(each.is_idle for each in stacks) or any(not each.may_wait for each in stacks)
    return [stack for stack in stacks if stack.may_wait] if len(stacks) > 1 and computations_wait else []


def _waiting_for_thread(hang: Hang) -> Verdict | None:
    """All ranks exit, and one waits for a thread of its own."""
    first = next((stack for stack in hang.stacks if stack.waits_for), None)
    if first is None:
        return None
    made = _verdict_on(hang.step, hang.ranks, first, f"{_activity(first)}{hang.duration}")
    return replace(made, advice="end the thread, or make it a daemon")


def _mismatched(hang: Hang) -> Verdict | None:
    """Ranks have called different collectives."""
    difference = collectives.mismatch(hang.recordings)
    return None if difference is None else _mismatch_verdict(hang.step, hang.ranks, hang.stacks, difference)


def _joining(hang: Hang) -> Verdict | None:
    """Ranks join a process group with different world sizes, or at different addresses."""
    count = str(max(len(hang.ranks), len(hang.stacks)))  # a launcher's workers are more than the job's ranks
    for names, own, other, advice in _JOINED:
        values: dict[str, list[Stack]] = {}
        for stack in hang.stacks:
            if names <= stack.settings.keys():
                values.setdefault(":".join(stack.settings[name] for name in sorted(names)), []).append(stack)
        # Rank 0 is where the others have to connect to.
        right = {value: value == count or (other == "at" and each[0].number == 0) for value, each in values.items()}
        if len(values) > 1:
            (wrong, few), *_, (value, others) = sorted(values.items(), key=lambda each: (right[each[0]], len(each[1])))
            reason = f"it {own} {wrong}, and {_rank_numbers(others)} {other} {value}"
            return replace(_verdict_on(hang.step, hang.ranks, few[0], reason), advice=f"every rank must {advice}")
    return None


def _absent(hang: Hang) -> Verdict | None:
    """A rank runs other code."""
    absent = [stack for stack in hang.stacks if not stack.may_wait]
    first = next((stack for stack in absent if stack in hang.behind), next(iter(absent), None))
    return None if first is None else hang.blaming(first, f"{_activity(first)}, and {hang.others_wait}")


def _ended(hang: Hang) -> Verdict | None:
    """A rank has ended."""
    ended = [rank for rank in hang.ranks if rank.status is Status.COMPLETED]
    if not ended:
        return None
    first = Stack(min(ended, key=lambda rank: rank.ended or 0.0).rank, ())
    return hang.blaming(first, f"it ended with exit code 0, and {hang.others_wait}")


def _in_other_groups(hang: Hang) -> Verdict | None:
    """Ranks wait in different process groups."""
    behind, calls = hang.behind, hang.calls
    if hang.lost is not None or not _differ_in_group(behind or hang.waiting, calls, anyhow=bool(behind)):
        return None
    places = dict.fromkeys(_in_group(each, calls) for each in hang.waiting)
    texts = (
        f"{_rank_numbers(each for each in hang.waiting if _in_group(each, calls) == text)} in {text}" for text in places
    )
    reason = f"ranks wait in different process groups: {', '.join(texts)}{hang.duration}"
    return Verdict(hang.step, reason, traceback=str(hang.waiting[0]), code=CODE, advice=ADVICE)


def _late(hang: Hang) -> Verdict | None:
    """A rank has called fewer collectives than the others."""
    if hang.late is None or not hang.behind or hang.lost is not None:
        return None
    first = hang.behind[0]
    return hang.blaming(
        first, f"it waits in {_collective_text(first, hang.calls)}, and {hang.late.others_wait}{hang.duration}"
    )


def _elsewhere(hang: Hang) -> Verdict | None:
    """A few ranks wait at another place than most."""
    groups = hang.groups
    if len(groups) < 2 or hang.lost is not None or _are_halves(groups, hang.ranks):
        return None
    smallest = min(groups, key=len)
    first, others = smallest[0], [stack for group in groups if group is not smallest for stack in group]
    # In backward() a rank may compute or wait.
    name = first.collective or (first.is_idle and first.computation)
    size = f" with world size {first.settings['world_size']}" if "world_size" in first.settings else ""
    own = f"it waits in {name}{size}" if name else _activity(first)
    return hang.blaming(first, f"{own}, and {_rank_numbers(others)} in {_waiting_place(others[0])}{hang.duration}")


def _lost_messages(hang: Hang) -> Verdict:
    """Ranks wait for lost messages, and none is to blame: all have called the collective, or two halves of the ranks
    wait at different lines."""
    waiting, groups = hang.waiting, hang.groups
    those, ending = waiting, "no message arrives"
    if hang.lost is not None:
        call, those = hang.lost
        where = f"{call.located}{hang.duration}, which all ranks have called"
    elif len(groups) > 1:
        those, rest = groups
        where = f"{_waiting_place(those[0])}, and {_rank_numbers(rest)} in {_waiting_place(rest[0])}{hang.duration}"
    else:
        last, settings = hang.calls.get(waiting[0].number), waiting[0].settings
        where = last.located if last is not None else _waiting_place(waiting[0])
        if "port" in settings:
            where += " to connect to {hostname}:{port}".format(**settings)
        where += hang.duration
    everyone = hang.lost is None and len(groups) == 1
    advice = "see whether the instances are connected"
    if waiting[0].is_of_ray:
        those, everyone, ending = waiting, False, "no task of Ray runs"
        advice += ", and have the resources that the tasks request: ray status"
    who = "every rank waits" if everyone else f"{_rank_numbers(those)} {'wait' if len(those) > 1 else 'waits'}"
    reason = f"{who} in {where}, and {ending}"
    return Verdict(hang.step, reason, traceback=str(waiting[0]), code=CODE, advice=advice)


_RULES: tuple[Callable[[Hang], Verdict | None], ...] = (
    *(_mismatched, _joining, _absent, _ended),
    *(_in_other_groups, _late, _elsewhere, _lost_messages),
)
"""Each returns its verdict, or None if it does not apply. The first verdict counts; the last rule always applies."""


def _differ_in_group(waiting: Sequence[Stack], calls: Mapping[int, Call], *, anyhow: bool) -> bool:
    """Return whether ranks wait in different process groups.

    anyhow: whether to include the case of a single rank in another group than all others
    """
    sizes = Counter(calls[stack.number].group for stack in waiting if stack.number in calls)
    return len(sizes) > 1 and (anyhow or len(sizes) > 2 or min(sizes.values()) > 1 or len(waiting) == 2)


def _in_group(stack: Stack, calls: Mapping[int, Call]) -> str:
    group = calls[stack.number].group if stack.number in calls else "0"
    return f"{stack.collective} of {'the default group' if group == '0' else f'group {group}'} ({stack.where})"


def of_recordings(step: str, ranks: Sequence[RankRecord], recordings: Sequence[Recording]) -> Verdict | None:
    """Return the verdict by the collectives of the ranks only; None if all have called the same ones."""
    if (difference := collectives.mismatch(recordings)) is not None:
        return _mismatch_verdict(step, ranks, (), difference)
    if (late := collectives.missing(recordings)) is None:
        return None
    reason = f"its last collective is {late.call.located}, and {late.others_wait}"
    return replace(_verdict_on(step, ranks, _without_stack(late), reason), where=late.call.where)


def _without_stack(difference: Difference) -> Stack:
    first = difference.first
    return Stack(first.job_rank, (), None if first.launcher is None else first.rank)


def _mismatch_verdict(
    step: str, ranks: Sequence[RankRecord], stacks: Sequence[Stack], difference: Difference
) -> Verdict:
    """Return the verdict on ranks that have called different collectives."""
    own = (stack for stack in stacks if stack.number == difference.first.rank)
    stack = next(own, _without_stack(difference))
    reason = f"it called {difference.call.located}, and {difference.other_calls}"
    made = _verdict_on(step, ranks, stack, reason)
    return replace(made, where=difference.call.where, code=MISMATCH, advice=ADVICE_ON_MISMATCH)


def with_mismatch(verdict: Verdict, ranks: Sequence[RankRecord], recordings: Sequence[Recording]) -> Verdict:
    """Return a verdict that names the different collectives that ranks have called, if they explain the failure.

    verdict: blames a rank for a consequence: a time-out, a message of the wrong size, or the end of another rank
    """
    difference = collectives.mismatch(recordings)
    if difference is None and (sizes := _SIZES.search("\n".join((verdict.reason, *verdict.tail)))):
        reason = f"gloo aborted it in a collective: it received {sizes[1]} bytes, and expected {sizes[2]}"
        said = tuple(collectives.last_calls(recordings))
        return replace(verdict, reason=reason, code=MISMATCH, consequences=(*said, *verdict.consequences))
    if difference is None or not (signatures.depth(verdict.reason) or verdict.exit_code == 0):
        return verdict
    made = _mismatch_verdict(verdict.step, ranks, (), difference)
    return replace(made, consequences=(f"{rank_list([verdict.rank or 0])}: {verdict.reason}", *verdict.consequences))


def of_time_out(verdict: Verdict, ranks: Sequence[RankRecord], stacks: Sequence[Stack]) -> Verdict:
    """Return a verdict that blames the rank for which others waited in vain, if it still runs; else the given one.

    verdict: blames a rank that waited, or lost its connection
    stacks:  of the ranks that still ran when the first one gave up
    """
    waited, ending = rank_list([verdict.rank or 0]), "waited for it in vain"
    absent = [stack for stack in stacks if not stack.may_wait and not stack.is_exiting]
    if signatures.FAILED_TO_PASS.search(verdict.reason):
        absent = [stack for stack in absent if stack.number == verdict.rank]
        waited = signatures.FAILED_TO_PASS.sub("", verdict.reason).removeprefix(", says ")
    elif signatures.depth(verdict.reason) > 1:  # a rank may close its connections before it exits
        logs = {rank.rank: rank.log for rank in ranks}
        exiting = (stack for stack in stacks if stack.is_exiting)
        absent = [stack for stack in exiting if not tracebacks.of_lines(tracebacks.last_lines(logs[stack.rank]))]
        ending = "lost the connection to it"
    if not absent:
        return verdict
    made = _verdict_on(verdict.step, ranks, absent[0], f"{_activity(absent[0])}, and {waited} {ending}")
    return replace(made, consequences=(f"{waited}: {shortened(verdict.reason)}", *verdict.consequences))


def _verdict_on(step: str, ranks: Sequence[RankRecord], stack: Stack, reason: str) -> Verdict:
    rank = next(rank for rank in ranks if rank.rank == stack.rank)
    advice = "see what this line of the task waits for" if stack.is_of_ray else ADVICE
    if not stack.may_wait and (raised := tracebacks.of_thread(rank.log)) is not None:
        reason = f"a thread of it ended with {raised.located}, and {reason}"
    return Verdict(
        step,
        reason,
        rank=rank.rank,
        instance_rank=rank.instance_rank,
        log=rank.log,
        traceback=str(stack) if stack.frames else "",
        worker=stack.worker if stack.worker != rank.rank else None,
        where=stack.where,
        code=CODE,
        advice="every rank must reach its script: see what this command waits for" if stack.command else advice,
    )


def _activity(stack: Stack) -> str:
    if stack.waits_for:
        return f"it waits for {stack.waits_for}"
    if stack.command or stack.is_exiting:
        return f"it has not started Python; {stack.command}" if stack.command else "it exits"
    text = stack.user.text if stack.user else ""
    state = "holds the GIL" if stack.holds_gil else "is stopped by a signal" if stack.is_stopped else "is"
    place = f"at `{text}`" if text else f"in {stack.frames[0].function}" if stack.frames else ""
    return f"{'its Ray worker' if stack.is_of_ray else 'it'} {state} {place}".rstrip()


def _waiting_place(stack: Stack) -> str:
    name = stack.collective or stack.computation
    return f"{name} ({stack.where})" if stack.where else name


def _collective_text(stack: Stack, calls: Mapping[int, Call]) -> str:
    """Return the collective in which a rank waits, with its shape if a recording has it."""
    call = calls.get(stack.number)
    known = call is not None and call.shapes and stack.collective.replace("_", "") in call.name.replace("_", "")
    return str(call) if known else stack.collective


def _rank_numbers(stacks: Iterable[Stack]) -> str:
    return rank_list(sorted({stack.number for stack in stacks}))


def _groups(stacks: Sequence[Stack]) -> list[list[Stack]]:
    """Return the ranks that wait at the same place, the lowest ranks first."""
    groups: dict[str, list[Stack]] = {}
    for stack in sorted(stacks, key=lambda stack: stack.number):
        groups.setdefault(_waiting_place(stack), []).append(stack)
    return list(groups.values())


def _are_halves(groups: Sequence[Sequence[Stack]], ranks: Sequence[RankRecord]) -> bool:
    """Return whether the ranks wait in two halves, at different lines of the same collective, or each half on its own
    instance: the last message has reached only one half."""
    first, *others = groups
    names = {group[0].collective or group[0].computation for group in groups}
    instance_of = {rank.rank: rank.instance_rank for rank in ranks}
    instances = {frozenset(instance_of[stack.rank] for stack in group) for group in groups}
    on_own = len(first) > 1 and len(instances) == len(groups) and all(len(each) == 1 for each in instances)
    return [len(group) for group in others] == [len(first)] and (len(names) == 1 or on_own)


def _consequences(groups: Sequence[Sequence[Stack]], first: Stack) -> tuple[str, ...]:
    others = [[stack for stack in group if stack is not first] for group in groups]
    return tuple(f"{_rank_numbers(group)}: in {_waiting_place(group[0])}" for group in others if group)
