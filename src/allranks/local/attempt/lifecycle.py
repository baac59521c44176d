"""The state of an attempt's processes, and its transitions. Nothing here waits, reads or signals.

`after_event` handles an event; `advance` applies the table of deadlines.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from allranks.local.attempt.stall import RAISED
from allranks.local.instances.supervisor import Event
from allranks.verdict.signatures import NOT_STARTED

SETTLE = 2.0
"""Seconds for the other ranks to exit by themselves after one has failed."""

DISMISSAL = 5.0
"""Seconds from SIGTERM to SIGKILL for processes without remaining work: servers of a finished step."""

GRACE = 30.0
"""Seconds from SIGTERM to SIGKILL: Azure ML's grace period at an eviction."""


class Action(enum.Enum):
    """An action of the monitor."""

    TERMINATE = "send SIGTERM to the ranks"
    DISMISS = "send SIGTERM to all programs"
    KILL = "send SIGKILL to all programs"
    READ_STACKS = "read the stacks of all ranks"
    READ_STACKS_OF_VICTIMS = "read the stacks of all ranks if the failure follows from that of another rank"


@dataclass(frozen=True)
class Limits:
    """The settings of an attempt.

    agents:        the name of each instance's agent, and the instance's name, for messages
    idle:          the agents that start no program
    decisive:      the programs that the step waits for
    linger:        seconds that the others have to exit by themselves
    timeout:       seconds after which the step is stopped; None: no limit
    start_timeout: seconds in which each instance must start its programs
    debugged:      whether a debugger may stop ranks, so that a rank that raised an exception may take long to exit
    """

    agents: Mapping[str, str]
    idle: frozenset[str]
    decisive: frozenset[str]
    linger: float = 0.0
    timeout: float | None = None
    start_timeout: float = 20.0
    debugged: bool = False

    def names(self, agents: frozenset[str]) -> str:
        return ", ".join(name for agent, name in self.agents.items() if agent in agents)


@dataclass(frozen=True)
class Surroundings:
    """Conditions outside of the attempt's processes.

    stopping: whether the run is being stopped. A rank that a signal then ends has not failed
    evicting: whether an evicted instance is in its grace period, during which a failed rank does not end the others
    running:  whether a rank is running
    stalled:  whether the ranks make no progress
    remaining: whether processes of ranks remain
    """

    stopping: bool = False
    evicting: bool = False
    running: bool = True
    stalled: bool = False
    remaining: bool = True


@dataclass(frozen=True)
class State:
    """The state of an attempt. Times are seconds of the monitor's clock; None: it has not happened.

    live, starting: agents that have not ended, or have not started their programs
    programs:       the running programs of each agent
    working:        the decisive programs that have not exited
    start_due:      when each instance must have started
    failed:         when the first rank failed
    overdue:        when the step reached its limit
    done:           when the last decisive program exited
    dismissed:      when SIGTERM was sent to the programs without work
    raised:         when each rank reported its failure
    broken:         why the attempt cannot continue, other than a failed rank; "" if it can
    late:           whether an instance did not start in time
    orphaned:       whether the launcher was killed from outside and left its ranks running
    """

    started: float
    live: frozenset[str]
    starting: frozenset[str]
    programs: Mapping[str, frozenset[str]]
    working: frozenset[str]
    start_due: float | None = None
    failed: float | None = None
    overdue: float | None = None
    done: float | None = None
    dismissed: float | None = None
    raised: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    broken: str = ""
    stopped: bool = False
    terminated: bool = False
    killed: bool = False
    late: bool = False
    orphaned: bool = False
    stacks_asked: bool = False

    @classmethod
    def at_start(cls, limits: Limits, now: float) -> State:
        agents = frozenset(limits.agents)
        return cls(now, agents, agents, dict.fromkeys(agents, frozenset()), limits.decisive)

    def recorded_code(self, code: int) -> int:
        """Return the exit code to record for a rank. A server does not exit by itself, so its end after the engine's
        SIGTERM counts as success."""
        return 0 if self.dismissed is not None and self.failed is None and not self.orphaned else code

    def is_ended_by_engine(self, around: Surroundings) -> bool:
        """Return whether a rank that ends now is ended by the engine or with its launcher, not by its own failure."""
        return around.stopping or self.overdue is not None or self.killed or self.orphaned


def after_event(state: State, limits: Limits, event: Event, around: Surroundings, now: float) -> State:
    """Return the state after an event of an agent or a launcher."""
    transition = _EVENTS.get(event.kind)
    return state if transition is None else transition(state, limits, event, around, now)


def advance(state: State, limits: Limits, around: Surroundings, now: float) -> tuple[State, tuple[Action, ...]]:
    """Return the state at time `now`, and the actions to take."""
    actions: list[Action] = []
    for deadline in DEADLINES:
        if deadline.is_reached(state, limits, around, now):
            state = deadline.then(state, limits, around, now)
            actions += deadline.actions
    return state, tuple(actions)


def with_failure(state: State, now: float) -> State:
    """Return the state after a rank has failed."""
    return replace(state, failed=now if state.failed is None else state.failed)


def with_raised(state: State, rank: int, moment: float) -> State:
    """Return the state after a rank has reported a failure."""
    return state if rank in state.raised else replace(state, raised={**state.raised, rank: moment})


def _on_gone(state: State, limits: Limits, event: Event, around: Surroundings, _: float) -> State:
    agent = event.agent
    starting = state.starting - {agent} if agent in limits.idle else state.starting
    broken = state.broken
    if not (state.killed or broken or around.stopping) and (state.programs.get(agent) or agent in starting):
        # The instance agent stopped without reporting the exit of its processes.
        broken = f"{limits.agents[agent]}: its agent was killed from outside the run"
    return replace(state, live=state.live - {agent}, starting=starting, broken=broken)


def _on_forked(state: State, limits: Limits, _: Event, __: Surroundings, now: float) -> State:
    return replace(state, start_due=now + limits.start_timeout if state.start_due is None else state.start_due)


def _on_failed(state: State, limits: Limits, event: Event, _: Surroundings, __: float) -> State:
    broken = state.broken or event.reason
    if event.agent in state.starting:
        broken = f"{limits.agents[event.agent]} {NOT_STARTED}: {event.reason}"
    return replace(state, broken=broken)


def _on_started(state: State, _: Limits, event: Event, __: Surroundings, ___: float) -> State:
    programs = dict(state.programs)
    if event.agent in programs:
        programs[event.agent] |= {event.program}
    return replace(state, starting=state.starting - {event.agent}, programs=programs)


def _on_exited(state: State, _: Limits, event: Event, __: Surroundings, now: float) -> State:
    programs = dict(state.programs)
    if event.agent in programs:
        programs[event.agent] -= {event.program}
    working = state.working - {event.program}
    done = now if not working and state.done is None else state.done
    orphaned = state.orphaned
    if event.program in state.working and not event.program.startswith("rank "):
        orphaned = (event.code or 0) < 0 and not state.killed
    return replace(state, programs=programs, working=working, done=done, orphaned=orphaned)


_EVENTS: Mapping[str, Callable[[State, Limits, Event, Surroundings, float], State]] = {
    "gone": _on_gone,
    "forked": _on_forked,
    "failed": _on_failed,
    "started": _on_started,
    "exited": _on_exited,
}
"""The transition function of each kind of event."""


@dataclass(frozen=True)
class Deadline:
    """A condition in time, and the reaction of the engine.

    is_reached: returns whether the condition is true
    then:       returns the new state
    """

    is_reached: Callable[[State, Limits, Surroundings, float], bool]
    then: Callable[[State, Limits, Surroundings, float], State]
    actions: tuple[Action, ...] = ()


def _passed(moment: float | None, seconds: float, now: float) -> bool:
    return moment is not None and now > moment + seconds


def _is_late(state: State, _: Limits, __: Surroundings, now: float) -> bool:
    return bool(state.starting) and not state.late and _passed(state.start_due, 0.0, now)


def _late(state: State, limits: Limits, around: Surroundings, _: float) -> State:
    if state.killed or around.stopping:
        return replace(state, late=True)
    reason = f"{limits.names(state.starting)} {NOT_STARTED} within {limits.start_timeout:g} s"
    return replace(state, late=True, broken=state.broken or reason)


def _is_overdue(state: State, limits: Limits, _: Surroundings, now: float) -> bool:
    return limits.timeout is not None and state.overdue is None and _passed(state.started, limits.timeout, now)


def _is_to_dismiss(state: State, limits: Limits, _: Surroundings, now: float) -> bool:
    # A launcher that the engine killed did not finish, so the processes that it left behind are not servers.
    is_over = state.done is not None and now >= state.done + limits.linger
    return is_over and state.dismissed is None and not state.killed


def _must_kill(state: State, limits: Limits, around: Surroundings, now: float) -> bool:
    if state.killed:
        return False
    if state.broken or state.late or around.stalled or (state.terminated and not around.remaining):
        return True
    # Only for ranks that still run: after a rank has failed, mpirun sleeps for the grace period unconditionally.
    has_grace = around.evicting and around.running
    return (
        (_passed(state.failed, SETTLE, now) and not has_grace)
        or (not limits.debugged and any(_passed(moment, RAISED, now) for moment in state.raised.values()))
        or _passed(state.overdue, GRACE, now)
        or _passed(state.dismissed, SETTLE if state.orphaned else DISMISSAL, now)
    )


DEADLINES = (
    # An instance has not started its programs in time, also while the run is being stopped.
    Deadline(_is_late, _late),
    # The step has reached its limit.
    Deadline(
        _is_overdue,
        lambda state, _, __, now: replace(state, overdue=now, stacks_asked=True),
        (Action.READ_STACKS, Action.TERMINATE),
    ),
    # The run is being stopped.
    Deadline(
        lambda state, _, around, __: around.stopping and not state.stopped,
        lambda state, *_: replace(state, stopped=True),
        (Action.TERMINATE,),
    ),
    # A rank has failed.
    Deadline(
        lambda state, *_: state.failed is not None and not state.stacks_asked,
        lambda state, *_: replace(state, stacks_asked=True),
        (Action.READ_STACKS_OF_VICTIMS,),
    ),
    # Only programs without work are running.
    Deadline(_is_to_dismiss, lambda state, _, __, now: replace(state, dismissed=now), (Action.DISMISS,)),
    # Processes have not ended within their time.
    Deadline(_must_kill, lambda state, *_: replace(state, killed=True), (Action.KILL,)),
)
"""The deadlines, in the order in which they apply. Each row sees the state that the rows above return."""
