"""Allocate the slots and GPUs of this machine to steps, in the order in which the steps became ready.

All runs of this user share slots and GPUs: each is a file, locked by the run that uses it. The kernel releases the lock
when the run's process ends for any reason.
"""

import asyncio
import contextlib
import fcntl
import itertools
import os
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from allranks.errors import InputError, Problem
from allranks.workspace import user_name

RETRY = 0.05
"""Seconds between two attempts to get resources that another run uses."""

NOTICE_AFTER = 2.0
"""Seconds that a step waits for other runs before the user is notified."""

_LONGEST_OWNER = 200
_UNKNOWN = "another run"

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
    """A waiting step."""

    name: str
    slots: int
    gpus: int
    turn: asyncio.Future[Share]


class SharedLocks:
    """Locks that processes of one user share, by name.

    folder:  the folder of the lock files; by default this user's own folder, the same for every run
    owner:   the run that locks, for the messages of others
    holders: the runs that hold names which could not be locked
    """

    def __init__(self, folder: Path | None = None, owner: str = "") -> None:
        self.holders: dict[str, None] = {}
        self._owner = owner
        # A run that a step starts must not wait for the slots of that step.
        parent = f"-{run}" if (run := os.environ.get("AZUREML_RUN_ID")) else ""
        self.folder = folder or Path(tempfile.gettempdir()) / f"allranks-slots-{os.getuid()}{parent}"
        self._held: dict[str, int] = {}

    def acquire(self, name: str) -> bool:
        """Lock a name. Return whether it was free. Raise InputError if the folder cannot be trusted or used."""
        folder = self._open_folder()
        try:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        except OSError as error:
            raise self._refusal(f"{name} in it cannot be opened: {error.strerror}") from None
        finally:
            os.close(folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.holders[os.pread(descriptor, _LONGEST_OWNER, 0).decode(errors="replace") or _UNKNOWN] = None
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, self._owner.encode()[:_LONGEST_OWNER], 0)
        self._held[name] = descriptor
        return True

    def release(self, name: str) -> None:
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
            raise self._refusal("it is a link" if is_link else f"it cannot be used: {error.strerror}") from None
        status = os.fstat(folder)
        if status.st_uid != os.geteuid():
            os.close(folder)
            raise self._refusal(f"it belongs to {user_name(status.st_uid)}")
        if status.st_mode & 0o077:
            os.fchmod(folder, 0o700)
        return folder

    def _refusal(self, found: str) -> InputError:
        fix = "remove it, or set TMPDIR to a folder of your own"
        return InputError(Problem(str(self.folder), found, "a folder of this user, for the locks of slots", fix))


class Slots:
    """The slots and GPUs of this machine for one run. A step starts when it and all steps that waited before it fit.

    total:  maximum ranks of this run at once; a step that needs more gets all of them
    gpus:   the GPUs that this run may use
    notice: called with the runs that use the resources that this run waits for, and with none when the wait is over
    """

    def __init__(
        self,
        total: int,
        gpus: Sequence[str] = (),
        locks: SharedLocks | None = None,
        notice: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        self._notice = notice
        self._noticed = False
        self._locks = locks or SharedLocks()
        self._total = total
        self._free_slots = list(range(total))
        self._free_gpus = list(gpus)
        self._gpu_count = len(gpus)
        self._waiting: deque[_Waiter] = deque()
        self._retry: asyncio.TimerHandle | None = None
        self._blocked_since: float | None = None

    @contextlib.asynccontextmanager
    async def acquire(self, slots: int, gpus: int = 0, name: str = "") -> AsyncIterator[Share]:
        """Hold slots and GPUs for the duration of the block. Wait until they are free.

        A step that needs more slots than exist gets all of them. It must not ask for more GPUs than exist. name: the
        step's name for `withdraw`. Raise WithdrawnError if `withdraw` ends the wait.
        """
        turn: asyncio.Future[Share] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(name, min(slots, self._total), min(gpus, self._gpu_count), turn)
        self._waiting.append(waiter)
        self._admit()
        try:
            share = await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():
                self._release(waiter.turn.result())
            else:
                self._admit()  # the waiting steps behind it
            raise
        try:
            yield share
        finally:
            self._release(share)

    def at_once(self, slots: int, gpus: int = 0) -> int:
        """Return how many steps with these needs fit on the machine at the same time, at least one."""
        return max(min(self._total // slots, self._gpu_count // gpus if gpus else self._total), 1)

    def withdraw(self, is_withdrawn: Callable[[str], bool]) -> None:
        """End the wait of the steps with matching names."""
        for waiter in self._waiting:
            if not waiter.turn.done() and is_withdrawn(waiter.name):
                waiter.turn.set_exception(WithdrawnError())
        self._admit()

    def _release(self, share: Share) -> None:
        self._unlock(share)
        self._free_slots = sorted((*self._free_slots, *share.slots))
        self._free_gpus += share.gpus
        self._admit()

    def _admit(self) -> None:
        """Start the waiting steps that fit, in order."""
        while self._waiting:
            waiter = self._waiting[0]
            if not waiter.turn.done():  # else it was canceled or withdrawn
                share = self._acquire(waiter)
                if share is None:
                    return
                waiter.turn.set_result(share)
            self._waiting.popleft()
        self._end_wait()

    def _end_wait(self) -> None:
        if self._noticed:
            self._notice(())
        self._blocked_since, self._noticed = None, False

    def _acquire(self, waiter: _Waiter) -> Share | None:
        """Return the share that a step needs; None if part of it is not free. Slots that this run does not use may be
        locked by another run."""
        if len(self._free_slots) < waiter.slots or len(self._free_gpus) < waiter.gpus:
            return None
        self._locks.holders.clear()
        slots = self._lock_free(self._free_slots, waiter.slots, _slot)
        gpus = self._lock_free(self._free_gpus, waiter.gpus, _gpu)
        share = Share(tuple(slots), tuple(gpus))
        if len(slots) < waiter.slots or len(gpus) < waiter.gpus:
            self._unlock(share)
            self._wait_for_others()
            return None
        self._free_slots = [number for number in self._free_slots if number not in slots]
        self._free_gpus = [name for name in self._free_gpus if name not in gpus]
        self._end_wait()
        return share

    def _lock_free(self, candidates: Sequence[_Name], count: int, lock_of: Callable[[_Name], str]) -> list[_Name]:
        """Lock candidates in order until there are enough. Return those that could be locked."""
        free = (candidate for candidate in candidates if self._locks.acquire(lock_of(candidate)))
        return list(itertools.islice(free, count))

    def _unlock(self, share: Share) -> None:
        for lock in (*map(_slot, share.slots), *map(_gpu, share.gpus)):
            self._locks.release(lock)

    def _wait_for_others(self) -> None:
        """Try again soon, because other runs do not announce the resources that they release."""
        now = time.monotonic()
        self._blocked_since = self._blocked_since or now
        if now - self._blocked_since >= NOTICE_AFTER and not self._noticed:
            self._noticed = True
            self._notice(tuple(self._locks.holders))
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY, self._admit_again)

    def _admit_again(self) -> None:
        self._retry = None
        self._admit()


class Machines:
    """Indexes of the run's emulated machines. Released indexes are reused, like the instances of a warm cluster."""

    def __init__(self) -> None:
        self._used: set[int] = set()

    def acquire(self, count: int) -> list[int]:
        """Return the lowest free indexes."""
        free = (index for index in itertools.count() if index not in self._used)
        indexes = list(itertools.islice(free, count))
        self._used.update(indexes)
        return indexes

    def release(self, indexes: list[int]) -> None:
        self._used.difference_update(indexes)


def _slot(number: int) -> str:
    return f"slot-{number}"


def _gpu(name: str) -> str:
    return f"gpu-{name.replace(os.sep, '_')}"
