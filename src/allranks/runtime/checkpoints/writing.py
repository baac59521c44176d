"""Write a checkpoint by torch.distributed.checkpoint: a file of each rank, torch's metadata, and then the manifest.

Sources: torch/distributed/checkpoint/default_planner.py and filesystem.py
"""

import io
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Size
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import SavePlan, TensorWriteData, WriteItem, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from allranks.errors import InputError, Problem
from allranks.runtime import lifecycle
from allranks.runtime.checkpoints import manifest
from allranks.runtime.checkpoints.manifest import BLOCK_BYTES, FileRecord, Manifest
from allranks.runtime.checkpoints.state import tensor_name
from allranks.runtime.tensors import StatePath, TensorShard

VISIBLE_SECONDS = 60.0
"""Time until a file of another instance must be visible on rank 0's: mounted storage has caches."""

_POLL_SECONDS = 0.05
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Shard:
    """The part of a tensor that a rank writes, in the form that torch's planner takes."""

    shard: TensorShard

    def __create_write_items__(self, name: str, _: object) -> list[WriteItem]:
        return [
            WriteItem(
                MetadataIndex(name, offsets),
                WriteItemType.SHARD,
                tensor_data=TensorWriteData(
                    ChunkStorageMetadata(Size(offsets), values.shape),
                    TensorProperties(self.shard.dtype),
                    Size(self.shard.shape),
                ),
            )
            for offsets, values in self.shard.pieces
        ]

    def piece(self, offsets: tuple[int, ...] | None) -> Any:
        """Return the values of the piece at these offsets."""
        return dict(self.shard.pieces)[tuple(offsets or ())]


def nested(shards: Mapping[StatePath, TensorShard], others: Mapping[str, io.BytesIO]) -> dict[str, Any]:
    """Return the state dict for torch's `save`, with this rank's shards and the bytes of other values."""
    state: dict[str, Any] = dict(others)
    for path, shard in shards.items():
        if not shard.pieces:
            continue
        place = state
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = Shard(shard)
    return state


class Planner(DefaultSavePlanner):
    """Plan the writing of a state from `nested`. Ranks do not resend an unchanged plan.

    key:   name of the checkpoints, of which torch keeps the last plan
    ready: waits until the copies of the tensors are complete
    """

    def __init__(self, key: str, ready: Callable[[], None]) -> None:
        super().__init__(enable_plan_caching=True)
        self._cached_plans_key = key
        self._ready = ready

    def create_local_plan(self) -> SavePlan:
        """Return this rank's plan when its tensors are ready. torch reports a failure to all ranks."""
        self._ready()
        return super().create_local_plan()

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Return the piece of a tensor, or the bytes of another value."""
        value = self.state_dict[index.fqn]
        return value.piece(index.offset) if isinstance(value, Shard) else value

    def transform_object(self, _: WriteItem, object: Any) -> Any:
        """Return the object: the bytes are those of torch.save already."""
        return object


class Writer(FileSystemWriter):
    """Writes a rank's file, and on rank 0 torch's metadata and the manifest, when all files are on disk.

    description: of the checkpoint, without its files
    aliases:     tied weights, which have the values of another tensor
    completed:   called on rank 0 when the checkpoint is complete
    """

    def __init__(
        self,
        path: Path,
        description: Manifest,
        aliases: Mapping[StatePath, StatePath],
        completed: Callable[[], None],
    ) -> None:
        super().__init__(path, per_thread_copy_ahead=0)
        self.fs = self._files = _Files()
        self._folder = path
        self._description, self._aliases, self._completed = description, aliases, completed

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Create the folder, and invalidate an earlier attempt at the same step."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in (manifest.MANIFEST, manifest.METADATA):
            (self._folder / name).unlink(missing_ok=True)
        return plan

    def write_data(self, plan: SavePlan, planner: Any) -> Future[list[Any]]:
        """Write this rank's file. Return torch's results, followed by the sizes and checksums of the files."""
        results: Future[list[Any]] = Future()
        results.set_result([*super().write_data(plan, planner).value(), self._files.records])
        return results

    def finish(self, metadata: Metadata, results: list[list[Any]]) -> None:
        """Write torch's metadata and the manifest. Called on rank 0."""
        files: dict[str, FileRecord] = {}
        for of_rank in results:
            files |= of_rank.pop()
        if unseen := self._unseen(files):
            raise OSError(f"{unseen[0]} of another rank, which rank 0 does not see")
        super().finish(metadata, [*results, self._aliased(metadata, results)])
        files[manifest.METADATA] = self._files.records[f"{manifest.METADATA}.tmp"]
        description = replace(self._description, files=files)
        manifest.sync_folder(self._folder)
        manifest.write(self._folder, description)
        manifest.sync_folder(self._folder.parent)
        manifest.remove_strays(self._folder, description)
        self._completed()

    def _aliased(self, metadata: Metadata, results: list[list[WriteResult]]) -> list[WriteResult]:
        """Add the aliases to the metadata. Return the results for them, which are those of the other tensors."""
        found: list[WriteResult] = []
        for path, source in self._aliases.items():
            name, other = tensor_name(path), tensor_name(source)
            metadata.state_dict_metadata[name] = metadata.state_dict_metadata[other]
            metadata.planner_data[name] = path
            for result in (result for of_rank in results for result in of_rank if result.index.fqn == other):
                found.append(replace(result, index=MetadataIndex(name, result.index.offset, result.index.index)))
        return found

    def _unseen(self, files: Mapping[str, FileRecord]) -> list[str]:
        """Wait until rank 0 sees the files of all ranks. Return the names that it does not see in time."""
        deadline = time.monotonic() + VISIBLE_SECONDS
        while unseen := [name for name, record in files.items() if _size(self._folder / name) != record.size]:
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        return unseen


class _Files(FileSystem):
    """The file system. records: sizes and checksums of the files that were written, by name"""

    def __init__(self) -> None:
        self.records: dict[str, FileRecord] = {}

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        """Open a file to be written."""
        assert mode == "wb"
        file = _ChecksummedFile(path, "w")
        with io.BufferedWriter(file, _BUFFER_BYTES) as stream:
            yield stream
        self.records[Path(path).name] = FileRecord(file.size, tuple(file.checksums))


class _ChecksummedFile(io.FileIO):
    """A new file. checksums: the CRC-32 of each of its blocks"""

    def __init__(self, path: str | os.PathLike[str], mode: str) -> None:
        super().__init__(path, mode)
        self.size = 0
        self.checksums: list[int] = []

    def write(self, data: Any, /) -> int:
        written = super().write(data)
        view = memoryview(data)[:written]
        while view:
            start = self.size % BLOCK_BYTES
            if start == 0:
                self.checksums.append(0)
            part = view[: BLOCK_BYTES - start]
            self.checksums[-1] = zlib.crc32(part, self.checksums[-1])
            self.size += len(part)
            view = view[len(part) :]
        return written


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


WRITE_SECONDS = 1800.0
"""Time limit for the files of the other ranks."""

ABANDON_SECONDS = 10.0
"""Time that a failed rank waits for a save in progress, while other ranks may be waiting for its exit."""


def not_written(path: Path, reason: str) -> InputError:
    """Return the error of a checkpoint that could not be written."""
    expected = "a folder with enough space, which all instances share, and every rank can write to"
    fix = "free space there, keep fewer checkpoints, or use an output of the job"
    return InputError(Problem(f"checkpoint {path}", reason, expected, fix, code="checkpoints"))


class BackgroundSave:
    """A save in progress.

    path: folder of the checkpoint
    save: writes the checkpoint
    """

    def __init__(self, path: Path, save: Callable[[], object]) -> None:
        self._path, self._save = path, save
        self._process = os.getpid()
        self._error: str | None = None
        self._thread = threading.Thread(target=self._work, name="allranks-checkpoint", daemon=True)
        lifecycle.OPEN.add(self)
        self._thread.start()

    @property
    def has_failed(self) -> bool:
        """Whether the checkpoint could not be written. The other ranks may not know yet."""
        return self._error is not None

    def close(self) -> None:
        """Wait until the checkpoint is complete. Raise InputError if it could not be written."""
        if os.getpid() != self._process:  # a forked process, such as a DataLoader's worker, has no thread
            return
        self._thread.join()
        lifecycle.OPEN.discard(self)
        if self._error is not None:
            raise not_written(self._path, self._error)

    def abandon(self) -> None:
        """Wait a few seconds for the save. If it takes longer, the checkpoint remains incomplete."""
        if os.getpid() == self._process:
            self._thread.join(ABANDON_SECONDS)

    def _work(self) -> None:
        try:
            self._save()
        except CheckpointException as error:  # of one or several ranks: torch raises it on all of them
            failures = sorted(error.failures.items())
            self._error = "; ".join(f"rank {rank}: {_first_line(reason)}" for rank, (reason, _) in failures)
        except Exception as error:  # a rank has ended, or the network failed
            self._error = f"the ranks lost their connection: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
