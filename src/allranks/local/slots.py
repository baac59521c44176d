"""How much of this machine is free: steps wait for slots and GPUs in the order in which they became ready.

Slots and GPUs are shared between all runs of this user: each is a file that the run that uses it has locked. The kernel
releases a lock when the run's process ends, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import heapq
import itertools
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

PATIENCE = 16
"""How often a step that does not fit may be overtaken by smaller ones before it is its turn."""

RETRY = 0.05
"""Seconds between two tries to get what another run has."""

TURN_AFTER = 1.0
"""Seconds that a step waits for other runs before they let it go first."""

NOTICE_AFTER = 2.0
"""Seconds that a step waits for other runs before the user is told."""

_TURN = "turn"
_Name = TypeVar("_Name", int, str)


@dataclass(frozen=True)
class Share:
    """What a step has while it runs: slots of this machine, and GPUs by the names that CUDA has for them."""

    slots: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()


class WithdrawnError(Exception):
    """The step that waited is not to start any more."""


@dataclass(eq=False)
class _Waiter:
    """A step that waits. number: its place in the order of all"""

    number: int
    name: str
    slots: int
    gpus: int
    turn: asyncio.Future[Share]
    overtaken: int = 0

    @property
    def needs(self) -> tuple[int, int]:
        """What it waits for. Of those that wait for the same, none fits where the first does not."""
        return self.slots, self.gpus


class SharedLocks:
    """Locks that processes of one user share, by name.

    folder: where the lock files are; the default is this user's own, the same for every run
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _default_folder()
        self._held: dict[str, int] = {}

    def take(self, name: str) -> bool:
        """Lock a name; return whether it was free."""
        try:
            descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self.take(name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._held[name] = descriptor
        return True

    def give(self, name: str) -> None:
        """Unlock a name."""
        os.close(self._held.pop(name))


class Slots:
    """Slots and GPUs of this machine as one run sees them.

    total: how many ranks of this run may be active at once; a step that needs more gets all of them
    gpus:  the GPUs that this run may use
    notice: called once each time that the run begins to wait for what other runs use
    """

    def __init__(
        self,
        total: int,
        gpus: Sequence[str] = (),
        locks: SharedLocks | None = None,
        notice: Callable[[], None] = lambda: None,
    ) -> None:
        self._notice = notice
        self._noticed = False
        self._locks = locks or SharedLocks()
        self._total = total
        self._free_slots = list(range(total))
        self._free_gpus = list(gpus)
        self._gpu_count = len(gpus)
        # By what they need, and then by number: thousands may wait, and only the first of each kind is looked at.
        self._waiting: dict[tuple[int, int], OrderedDict[int, _Waiter]] = {}
        self._numbers = itertools.count()
        self._retry: asyncio.TimerHandle | None = None
        self._blocked_since: float | None = None
        self._has_turn = False

    @contextlib.asynccontextmanager
    async def take(self, slots: int, gpus: int = 0, name: str = "") -> AsyncIterator[Share]:
        """Hold slots and GPUs for the duration of the block; wait until they are free.

        A step that needs more slots than there are holds all of them; it must not ask for more GPUs than there are.
        name: what `withdraw` knows the step by; raises WithdrawnError where that ends the wait.
        """
        turn: asyncio.Future[Share] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(next(self._numbers), name, min(slots, self._total), min(gpus, self._gpu_count), turn)
        self._waiting.setdefault(waiter.needs, OrderedDict())[waiter.number] = waiter
        self._admit()
        try:
            share = await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():
                self._give(waiter.turn.result())
            elif self._is_waiting(waiter):
                self._give_up([waiter])
            raise
        try:
            yield share
        finally:
            self._give(share)

    def withdraw(self, is_withdrawn: Callable[[str], bool]) -> None:
        """End the wait of the steps with such names."""
        withdrawn = [waiter for waiter in self._waiters() if is_withdrawn(waiter.name)]
        for waiter in withdrawn:
            waiter.turn.set_exception(WithdrawnError())
        self._give_up(withdrawn)

    def _waiters(self) -> Iterator[_Waiter]:
        for queue in self._waiting.values():
            yield from queue.values()

    def _is_waiting(self, waiter: _Waiter) -> bool:
        return waiter.number in self._waiting.get(waiter.needs, ())

    def _give_up(self, waiters: list[_Waiter]) -> None:
        if not waiters:
            return
        first = min(_first(queue).number for queue in self._waiting.values())
        if any(waiter.number == first for waiter in waiters):
            self._end_wait()  # other runs must not go on letting it go first
        for waiter in waiters:
            self._leave(waiter)
        self._admit()

    def _give(self, share: Share) -> None:
        for number in share.slots:
            self._locks.give(_slot(number))
            heapq.heappush(self._free_slots, number)
        for name in share.gpus:
            self._locks.give(_gpu(name))
            self._free_gpus.append(name)
        self._admit()

    def _admit(self) -> None:
        """Start every waiting step that fits, in order. A step that does not fit may be overtaken, but not for ever."""
        heads = [_first(queue).number for queue in self._waiting.values()]
        queues = dict(zip(heads, self._waiting.values(), strict=True))
        heapq.heapify(heads)
        passed: list[OrderedDict[int, _Waiter]] = []
        while heads:
            number = heapq.heappop(heads)
            queue = queues.pop(number)
            waiter = queue[number]
            has_left = waiter.turn.cancelled()
            share = None if has_left else self._acquire(waiter, first=not passed)
            if has_left or share is not None:
                self._leave(waiter)
                if share is not None:
                    _overtake(passed, number)
                    waiter.turn.set_result(share)
                if queue:
                    following = _first(queue).number
                    queues[following] = queue
                    heapq.heappush(heads, following)
                continue
            if waiter.overtaken >= PATIENCE or not self._free_slots:
                return
            passed.append(queue)

    def _leave(self, waiter: _Waiter) -> None:
        """Take a waiter out of its queue, if it is still in there."""
        queue = self._waiting.get(waiter.needs)
        if queue is not None and waiter.number in queue:
            del queue[waiter.number]
            if not queue:
                del self._waiting[waiter.needs]

    def _acquire(self, waiter: _Waiter, *, first: bool) -> Share | None:
        """Return what a step needs; None if not all of it is free. Another run may have locked what is free here."""
        if len(self._free_slots) < waiter.slots or len(self._free_gpus) < waiter.gpus:
            return None
        if self._is_turn_of_another_run():
            self._wait_for_others()
            return None
        slots = self._locked([(number, _slot(number)) for number in self._free_slots], waiter.slots)
        gpus = self._locked([(name, _gpu(name)) for name in self._free_gpus], waiter.gpus)
        if len(slots) == waiter.slots and len(gpus) == waiter.gpus:
            for number in slots:
                self._free_slots.remove(number)
            heapq.heapify(self._free_slots)
            for name in gpus:
                self._free_gpus.remove(name)
            if first:
                self._end_wait()
            return Share(tuple(slots), tuple(gpus))
        for number in slots:
            self._locks.give(_slot(number))
        for name in gpus:
            self._locks.give(_gpu(name))
        self._wait_for_others()
        return None

    def _locked(self, candidates: list[tuple[_Name, str]], count: int) -> list[_Name]:
        """As many of the candidates, in order, as are needed and could be locked."""
        found: list[_Name] = []
        for candidate, name in candidates:
            if len(found) == count:
                break
            if self._locks.take(name):
                found.append(candidate)
        return found

    def _wait_for_others(self) -> None:
        """Try again soon: what another run gives back is not announced. A run that has waited long takes the turn, and
        the others start nothing until it has got what it needs."""
        now = time.monotonic()
        self._blocked_since = self._blocked_since or now
        if now - self._blocked_since >= NOTICE_AFTER and not self._noticed:
            self._noticed = True
            self._notice()
        if now - self._blocked_since > TURN_AFTER and not self._has_turn:
            self._has_turn = self._locks.take(_TURN)
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY, self._admit_again)

    def _admit_again(self) -> None:
        self._retry = None
        self._admit()

    def _is_turn_of_another_run(self) -> bool:
        if self._has_turn:
            return False
        if self._locks.take(_TURN):
            self._locks.give(_TURN)
            return False
        return True

    def _end_wait(self) -> None:
        self._blocked_since = None
        self._noticed = False
        if self._has_turn:
            self._locks.give(_TURN)
            self._has_turn = False


class Machines:
    """Indexes of the run's emulated machines; a machine that a step gave back is used again, like a warm cluster's."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._made = 0

    def take(self, count: int) -> list[int]:
        """Return the lowest free indexes."""
        while len(self._free) < count:
            heapq.heappush(self._free, self._made)
            self._made += 1
        return [heapq.heappop(self._free) for _ in range(count)]

    def give(self, indexes: list[int]) -> None:
        """Say that these are free again."""
        for index in indexes:
            heapq.heappush(self._free, index)


def _first(queue: OrderedDict[int, _Waiter]) -> _Waiter:
    return next(iter(queue.values()))


def _overtake(queues: list[OrderedDict[int, _Waiter]], number: int) -> None:
    """Count that everyone in the queues who came before that number has been overtaken. Nobody is so more often than
    PATIENCE allows."""
    for queue in queues:
        for waiter in queue.values():
            if waiter.number > number:
                break
            waiter.overtaken += 1


def _slot(number: int) -> str:
    return f"slot-{number}"


def _gpu(name: str) -> str:
    return f"gpu-{name.replace(os.sep, '_')}"


def _default_folder() -> Path:
    # A run that a step starts must not wait for the slots of that step.
    within = os.environ.get("AZUREML_RUN_ID", "")
    return Path(tempfile.gettempdir()) / f"allranks-slots-{os.getuid()}{f'-{within}' if within else ''}"
