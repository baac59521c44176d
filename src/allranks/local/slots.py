"""Allocate the slots and GPUs of this machine to steps, in the order in which the steps became ready.

All runs of this user share slots and GPUs: each is a file, locked by the run that uses it. The kernel releases the lock
when the run's process ends for any reason.
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
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from allranks.errors import InputError, Problem
from allranks.history.workspace import user_name

PATIENCE = 16
"""How often smaller steps may overtake a step that does not fit before it must be next."""

RETRY = 0.05
"""Seconds between two attempts to get what another run uses."""

TURN_AFTER = 1.0
"""Seconds that a step waits for other runs before it takes precedence."""

NOTICE_AFTER = 2.0
"""Seconds that a step waits for other runs before the user is notified."""

_TURN = "turn"
_Name = TypeVar("_Name", int, str)


@dataclass(frozen=True)
class Share:
    """The resources of a running step: slots of this machine, and GPUs by their CUDA names."""

    slots: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()


class WithdrawnError(Exception):
    """The waiting step must not start."""


@dataclass(eq=False)
class _Waiter:
    """A waiting step. number: its position in the order of all steps"""

    number: int
    name: str
    slots: int
    gpus: int
    turn: asyncio.Future[Share]
    overtaken: int = 0

    @property
    def needs(self) -> tuple[int, int]:
        """The resources that the step waits for. If the first waiter with the same needs does not fit, none of them
        fits."""
        return self.slots, self.gpus


class SharedLocks:
    """Locks that processes of one user share, by name.

    folder: where the lock files are; by default this user's own folder, the same for every run
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _default_folder()
        self._held: dict[str, int] = {}

    def take(self, name: str) -> bool:
        """Lock a name. Return whether it was free. Raise InputError if the folder cannot be trusted or used."""
        folder = self._open_folder()
        try:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        except OSError as error:
            raise self._refused(f"{name} in it cannot be opened: {error.strerror}") from None
        finally:
            os.close(folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._held[name] = descriptor
        return True

    def give(self, name: str) -> None:
        os.close(self._held.pop(name))

    def check(self) -> None:
        """Raise InputError if the folder cannot be trusted or used."""
        os.close(self._open_folder())

    def _open_folder(self) -> int:
        """Return a descriptor of the folder, which is created if necessary.

        Its name can be predicted, and others may write where it is: another user's folder, or a link to one, would let
        that user block runs, and have files created elsewhere.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            is_link = self.folder.is_symlink()
            raise self._refused("it is a link" if is_link else f"it cannot be used: {error.strerror}") from None
        status = os.fstat(folder)
        if status.st_uid != os.geteuid():
            os.close(folder)
            raise self._refused(f"it belongs to {user_name(status.st_uid)}")
        if status.st_mode & 0o077:
            os.fchmod(folder, 0o700)
        return folder

    def _refused(self, found: str) -> InputError:
        fix = "remove it, or set TMPDIR to a folder of your own"
        return InputError(Problem(str(self.folder), found, "a folder of this user, for the locks of slots", fix))


class Slots:
    """The slots and GPUs of this machine for one run.

    total:  maximum ranks of this run at once; a step that needs more gets all of them
    gpus:   the GPUs that this run may use
    notice: called once each time that the run waits for what other runs use
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
        # By needs, then by number. Thousands may wait, so only the first waiter with the same needs is checked.
        self._waiting: dict[tuple[int, int], OrderedDict[int, _Waiter]] = {}
        self._numbers = itertools.count()
        self._retry: asyncio.TimerHandle | None = None
        self._blocked_since: float | None = None
        self._has_turn = False

    @contextlib.asynccontextmanager
    async def take(self, slots: int, gpus: int = 0, name: str = "") -> AsyncIterator[Share]:
        """Hold slots and GPUs for the duration of the block. Wait until they are free.

        A step that needs more slots than exist gets all of them. It must not ask for more GPUs than exist. name: the
        step's name for `withdraw`. Raise WithdrawnError if `withdraw` ends the wait.
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
            elif waiter.number in self._waiting.get(waiter.needs, ()):
                self._give_up([waiter])
            raise
        try:
            yield share
        finally:
            self._give(share)

    def at_once(self, slots: int, gpus: int = 0) -> int:
        """Return how many steps with these needs fit on the machine at the same time, at least one."""
        return max(min(self._total // slots, self._gpu_count // gpus if gpus else self._total), 1)

    def withdraw(self, is_withdrawn: Callable[[str], bool]) -> None:
        """End the wait of the steps with matching names."""
        waiters = (waiter for queue in self._waiting.values() for waiter in queue.values())
        withdrawn = [waiter for waiter in waiters if is_withdrawn(waiter.name)]
        for waiter in withdrawn:
            waiter.turn.set_exception(WithdrawnError())
        self._give_up(withdrawn)

    def _give_up(self, waiters: list[_Waiter]) -> None:
        if not waiters:
            return
        first = min(_first(queue).number for queue in self._waiting.values())
        if any(waiter.number == first for waiter in waiters):
            self._end_wait()  # other runs must stop waiting for its turn
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
        """Start every waiting step that fits, in order. A step that does not fit may be overtaken PATIENCE times."""
        heads = [_first(queue).number for queue in self._waiting.values()]
        queues = dict(zip(heads, self._waiting.values(), strict=True))
        heapq.heapify(heads)
        blocked: list[OrderedDict[int, _Waiter]] = []
        while heads:
            number = heapq.heappop(heads)
            queue = queues.pop(number)
            waiter = queue[number]
            is_canceled = waiter.turn.cancelled()
            share = None if is_canceled else self._acquire(waiter, first=not blocked)
            if is_canceled or share is not None:
                self._leave(waiter)
                if share is not None:
                    _overtake(blocked, number)
                    waiter.turn.set_result(share)
                if queue:
                    following = _first(queue).number
                    queues[following] = queue
                    heapq.heappush(heads, following)
                continue
            if waiter.overtaken >= PATIENCE or not self._free_slots:
                return
            blocked.append(queue)

    def _leave(self, waiter: _Waiter) -> None:
        """Remove a waiter from its queue, if it is still there."""
        queue = self._waiting.get(waiter.needs)
        if queue is not None and waiter.number in queue:
            del queue[waiter.number]
            if not queue:
                del self._waiting[waiter.needs]

    def _acquire(self, waiter: _Waiter, *, first: bool) -> Share | None:
        """Return the share that a step needs; None if part of it is not free. Another run may have locked what is free
        here."""
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
        """Lock candidates in order until there are enough. Return those that could be locked."""
        locked: list[_Name] = []
        for candidate, name in candidates:
            if len(locked) == count:
                break
            if self._locks.take(name):
                locked.append(candidate)
        return locked

    def _wait_for_others(self) -> None:
        """Try again soon, because other runs do not announce what they release. A run that has waited long takes
        precedence: the others then start nothing until it has its share."""
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
    """Indexes of the run's emulated machines. Released indexes are reused, like the instances of a warm cluster."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._count = 0

    def take(self, count: int) -> list[int]:
        """Return the lowest free indexes."""
        while len(self._free) < count:
            heapq.heappush(self._free, self._count)
            self._count += 1
        return [heapq.heappop(self._free) for _ in range(count)]

    def give(self, indexes: list[int]) -> None:
        for index in indexes:
            heapq.heappush(self._free, index)


def _first(queue: OrderedDict[int, _Waiter]) -> _Waiter:
    return next(iter(queue.values()))


def _overtake(queues: list[OrderedDict[int, _Waiter]], number: int) -> None:
    """Count for every waiter in the queues with a lower number that it has been overtaken. PATIENCE limits the
    count."""
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
    parent_run = os.environ.get("AZUREML_RUN_ID", "")
    return Path(tempfile.gettempdir()) / f"allranks-slots-{os.getuid()}{f'-{parent_run}' if parent_run else ''}"
