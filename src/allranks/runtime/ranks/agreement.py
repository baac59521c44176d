"""Agreement of the ranks on a step at which all of them save, without a collective in the training loop.

Each rank has a thread that polls the ranks' store twice a second. When a rank requests a save, every thread sets a
limit for its own rank: a step soon after the current one, which the rank does not pass before the decision. Rank 0
decides on the highest limit. No rank can have passed that step, however far apart the ranks are.
"""

import itertools
import os
import threading
import time
from dataclasses import dataclass
from typing import Any, cast

from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]

from allranks.runtime import lifecycle

POLL_SECONDS = 0.5
"""Interval in which a rank polls for requests of other ranks."""

ANSWER_SECONDS = 20.0
"""Time limit of rank 0 for the limits of the other ranks. Afterwards the request is void and repeated."""

CLOSE_SECONDS = 2.0
"""Time limit of `close` for the thread."""

_PAUSE_SECONDS = 0.002
_CLOSED = "closed"
_VOID = -1


@dataclass(frozen=True)
class Decision:
    """The agreement of the ranks.

    step: every rank saves at its first step that is at least this one
    stop: whether the training then ends, because a rank is evicted
    """

    step: int
    stop: bool


class Agreement:
    """One rank's part of the agreement.

    store: a store for this agreement only, the same on every rank

    With one rank, there is no thread, and a request takes effect immediately.
    """

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        self._store, self._rank, self._world_size = store, rank, world_size
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._step = 0
        self._limit: int | None = None  # the step that this rank does not pass before the decision
        self._decision: Decision | None = None
        self._requested = self._stop = self._closing = self._ended = False
        self._error: Exception | None = None
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def request(self, *, stop: bool) -> None:
        """Request a save on every rank at a step soon. Repeated requests have no effect until the save.

        stop: also end the training then
        """
        if self._ended or (self._requested and (self._stop or not stop)):
            return
        with self._lock:
            self._requested = True
            self._stop = self._stop or stop
            if stop and self._limit is None:
                self._limit = self._step + 1  # an evicted rank has little time
        self._wake.set()

    def reach(self, step: int) -> Decision | None:
        """Return the decision if this rank must save now, at this step; else None. Call it after each step.

        Raise ConnectionError if this rank is at its limit, and the other ranks do not answer.
        """
        if self._world_size == 1:
            alone = Decision(step, self._stop) if self._requested else None
            self._requested = self._stop = False
            return alone
        if self._thread is None:
            lifecycle.OPEN.add(self)
            self._thread = threading.Thread(target=self._work, name="allranks-agreement", daemon=True)
            self._thread.start()
        with self._lock:
            self._step = step
            if self._limit is None or step < self._limit:
                return None
            self._changed.wait_for(lambda: self._limit is None or self._decision or self._ended)
            if self._error:
                raise ConnectionError("the ranks could not agree on a step at which they save") from self._error
            if self._decision is None:  # the request is void
                return None
            if step < self._decision.step:
                self._limit = self._decision.step
                return None
            decision, self._decision, self._limit = self._decision, None, None
            self._requested = self._stop = False
            self._changed.notify_all()
            return decision

    def close(self) -> None:
        """Stop the thread. The other ranks no longer wait for this one."""
        if os.getpid() != self._process:  # a forked process, such as a DataLoader's worker, has no thread
            return
        lifecycle.OPEN.discard(self)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._wake.set()
        if self._thread:
            self._thread.join(CLOSE_SECONDS)

    def abandon(self) -> None:
        """Stop the thread."""
        self.close()

    def _work(self) -> None:
        error: Exception | None = None
        try:
            # A connection of its own: operations of the process group do not wait for this thread's.
            store = cast(Any, self._store).clone()
            rounds = itertools.count()
            while self._round(PrefixStore(str(next(rounds)), store), store):
                pass
            if self._closing:
                store.set(_CLOSED, "")
        except Exception as lost:  # rank 0, which hosts the store, has ended, or the network failed
            error = lost
        finally:
            with self._changed:
                self._ended, self._error = True, error
                self._changed.notify_all()

    def _round(self, store: Store, shared: Store) -> bool:
        """Agree on one step, and wait until this rank has reached it. Return whether another round follows.

        store, shared: the store of this round, and of all rounds
        """
        margin = self._wait_for_request(store)
        if self._closing:
            return False
        with self._lock:
            if self._limit is None:
                self._limit = self._step + margin
            limit, stop = self._limit, self._stop
        store.set(f"limit/{self._rank}", f"{limit} {int(stop)}")
        if self._rank == 0:
            store.set("decision", self._decide(store, shared))
        if not self._wait_for(store, ["decision"], 2 * ANSWER_SECONDS, shared):
            if self._closing or shared.check([_CLOSED]):
                return False
            raise TimeoutError(f"rank 0 did not answer within {2 * ANSWER_SECONDS:g} s")
        step, stopping = map(int, store.get("decision").split())
        with self._changed:
            if step == _VOID:
                self._limit = None
            else:
                self._decision = Decision(step, bool(stopping))
            self._changed.notify_all()
            if not stopping:
                self._changed.wait_for(lambda: self._closing or self._decision is None)
        return not stopping

    def _wait_for_request(self, store: Store) -> int:
        """Wait for a request of this rank or another. Return the number of steps to this rank's limit."""
        step, steps_per_poll = self._step, 0
        while not (self._closing or self._requested or store.check(["request"])):
            woken = self._wake.wait(POLL_SECONDS)
            self._wake.clear()
            if not woken:
                step, steps_per_poll = self._step, self._step - step
        if self._requested:
            stop = self._stop
            store.set("request", "stop" if stop else "save")
        else:
            stop = self._closing or store.get("request") == b"stop"
        # Without an eviction there is time, and a rank does not have to wait for one that sees the request later.
        return 1 if stop else 1 + steps_per_poll

    def _decide(self, store: Store, shared: Store) -> str:
        """Wait for the limits of all ranks. Return the highest one, and whether a rank is evicted."""
        keys = [f"limit/{rank}" for rank in range(self._world_size)]
        if not self._wait_for(store, keys, ANSWER_SECONDS, shared):
            return f"{_VOID} 0"
        limits = [tuple(map(int, value.split())) for value in store.multi_get(keys)]
        return f"{max(limit for limit, _ in limits)} {max(stop for _, stop in limits)}"

    def _wait_for(self, store: Store, keys: list[str], seconds: float, shared: Store) -> bool:
        """Wait for keys. Return False if they do not appear in time, or the training of a rank has ended."""
        # Not the store's `wait`, which can neither be interrupted nor time out without a warning on stderr.
        deadline = time.monotonic() + seconds
        while not store.check(keys):
            if self._closing or time.monotonic() > deadline or shared.check([_CLOSED]):
                return False
            self._wake.wait(_PAUSE_SECONDS)
            self._wake.clear()
        return True
