"""One save: a thread writes this rank's file, and rank 0's thread completes the checkpoint.

The thread spends its time in system calls and checksums, which do not hold Python's lock. The ranks communicate
through their store, over a separate connection, never by a collective: those belong to the training.
"""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.runtime import lifecycle
from allranks.runtime.checkpoints import manifest
from allranks.runtime.checkpoints.manifest import BLOCK_BYTES, FileRecord, Manifest

WRITE_SECONDS = 1800.0
"""How long rank 0 waits for the files of the other ranks, and they for rank 0."""

VISIBLE_SECONDS = 60.0
"""How long a file that another instance has written may take to appear on rank 0's: mounted storage has caches."""

ABANDON_SECONDS = 10.0
"""How long a failed rank waits for a save in progress, while the other ranks may be waiting for its end."""

_POLL_SECONDS = (0.002, 0.1)


@dataclass
class Channel:
    """The connection of one rank to the others.

    store: their store, None if there is one rank
    """

    store: Any
    rank: int
    world_size: int
    saves: int = field(default=0, init=False)
    _clone: Any = field(default=None, init=False)

    def connect(self) -> Any:
        """Return a connection for the thread of a save."""
        if self._clone is None and self.store is not None:
            self._clone = self.store.clone()
        return self._clone


def not_written(path: Path, reason: str) -> InputError:
    """Return the error of a checkpoint that could not be written."""
    expected = "a folder with enough space, which all instances share, and every rank can write to"
    fix = "free space there, keep fewer checkpoints, or use an output of the job"
    return InputError(Problem(f"checkpoint {path}", reason, expected, fix, code="checkpoints"))


@dataclass(eq=False)
class BackgroundSave:
    """A save in progress.

    path:        folder of the checkpoint
    token:       differs between attempts, so that none overwrites the files of another
    description: of the checkpoint, without its files
    completed:   called on rank 0 when the checkpoint is complete
    data:        the bytes of this rank's file
    ready:       waits until they are complete
    channel:     the connection to the other ranks
    """

    path: Path
    token: str
    description: Manifest
    completed: Callable[[], None]
    data: memoryview
    ready: Callable[[], None]
    channel: Channel

    def __post_init__(self) -> None:
        self._number = self.channel.saves
        self.channel.saves += 1
        self._abandoned = False
        self._process = os.getpid()
        self._error: str | None = None
        self._thread = threading.Thread(target=self._work, name="allranks-checkpoint", daemon=True)
        lifecycle.OPEN.add(self)
        self._thread.start()

    @property
    def has_failed(self) -> bool:
        """Whether the checkpoint could not be written. The other ranks may not know yet."""
        return self._error is not None

    def wait(self) -> None:
        """Wait until the checkpoint is complete. Raise InputError if it could not be written."""
        self._thread.join()
        lifecycle.OPEN.discard(self)
        if self._error is not None:
            raise not_written(self.path, self._error)

    def close(self) -> None:
        """Wait until the checkpoint is complete. Raise InputError if it could not be written."""
        if os.getpid() == self._process:  # a forked process, such as a DataLoader's worker, has no thread
            self.wait()

    def abandon(self) -> None:
        """Wait a few seconds for the save. If it takes longer, the checkpoint remains incomplete."""
        if os.getpid() == self._process:
            self._thread.join(ABANDON_SECONDS)
            self._abandoned = True

    def _work(self) -> None:
        try:
            store = self.channel.connect()
        except Exception as error:
            self._error = f"no connection to rank 0: {_first_line(error)}"
            return
        try:
            self.ready()
            record = self._write()
            failure = None
        except Exception as error:  # a full disk, no memory, or a copy from the device that failed
            record, failure = FileRecord(0, ()), f"rank {self.channel.rank}: {_first_line(error)}"
        try:
            if self.channel.rank == 0:
                self._error = failure or self._complete(store, record)
                self._tell(store, "outcome", self._error)
                if others := self.channel.world_size - 1:  # rank 0 hosts the store, and may exit next
                    self._poll(lambda: bool(store.add(f"{self._number}/seen", 0) >= others), ABANDON_SECONDS)
            else:
                self._tell(store, f"file/{self.channel.rank}", [record.size, record.checksums, failure])
                self._error = self._wait_for(store, ["outcome"])[0]
                store.add(f"{self._number}/seen", 1)
        except Exception as error:  # rank 0, which hosts the store, has ended, or the network failed
            self._error = f"the ranks lost their connection: {_first_line(error)}"

    def _write(self) -> FileRecord:
        self.path.mkdir(parents=True, exist_ok=True)
        checksums = []
        with self._file(self.channel.rank).open("wb", buffering=0) as file:
            for start in range(0, len(self.data), BLOCK_BYTES):
                block = self.data[start : start + BLOCK_BYTES]
                written = 0
                while written < len(block):
                    written += file.write(block[written:])
                checksums.append(zlib.crc32(block))
            os.fsync(file.fileno())
        return FileRecord(len(self.data), tuple(checksums))

    def _complete(self, store: Any, own: FileRecord) -> str | None:
        """Wait for the files of the other ranks, and write the manifest. Return what failed, None if nothing did."""
        others = range(1, self.channel.world_size)
        reports = self._wait_for(store, [f"file/{rank}" for rank in others]) if others else []
        failures = [failure for *_, failure in reports if failure]
        if failures:
            return "; ".join(failures)
        records = [own, *(FileRecord(size, tuple(checksums)) for size, checksums, _ in reports)]
        files = {self._file(rank).name: record for rank, record in enumerate(records)}
        path, description = self.path, replace(self.description, files=files)
        try:
            if unseen := self._unseen(description):
                return f"{unseen[0]} of another rank, which rank 0 does not see"
            manifest.sync_folder(path)
            manifest.write(path, description)
            manifest.sync_folder(path.parent)
            manifest.remove_strays(path, description)
            self.completed()
        except OSError as error:
            return f"rank 0: {_first_line(error)}"
        return None

    def _unseen(self, description: Manifest) -> list[str]:
        """Wait until rank 0 sees the files of the other ranks. Return the names that it does not see in time."""
        unseen = list(description.files)

        def all_seen() -> bool:
            unseen[:] = [name for name in unseen if self._size(name) != description.files[name].size]
            return not unseen

        self._poll(all_seen, VISIBLE_SECONDS)
        return unseen

    def _poll(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Wait until `is_done` returns True, the time is up or the save is abandoned. Return whether it is done."""
        deadline = time.monotonic() + seconds
        pause, longest = _POLL_SECONDS
        while not is_done():
            if self._abandoned or time.monotonic() > deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, longest)
        return True

    def _size(self, name: str) -> int | None:
        try:
            return (self.path / name).stat().st_size
        except OSError:
            return None

    def _file(self, rank: int) -> Path:
        return self.path / f"{rank:05d}-of-{self.channel.world_size:05d}-{self.token}.safetensors"

    def _tell(self, store: Any, key: str, value: object) -> None:
        if store is None:
            return
        if self.channel.rank == 0 and self._number >= 2:  # every rank has begun the save after that one
            names = ["outcome", "seen", *(f"file/{rank}" for rank in range(1, self.channel.world_size))]
            for name in names:
                store.delete_key(f"{self._number - 2}/{name}")
        store.set(f"{self._number}/{key}", json.dumps(value))

    def _wait_for(self, store: Any, keys: list[str]) -> list[Any]:
        names = [f"{self._number}/{key}" for key in keys]
        # Not the store's `wait`, which can't be interrupted.
        if not self._poll(lambda: bool(store.check(names)), WRITE_SECONDS):
            if self._abandoned:
                raise TimeoutError("the training failed while the checkpoint was being written")
            missing = [key for key, name in zip(keys, names, strict=True) if not store.check([name])]
            raise TimeoutError(f"waited {WRITE_SECONDS:g} s for {', '.join(missing[:8])}")
        return [json.loads(value) for value in store.multi_get(names)]


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
