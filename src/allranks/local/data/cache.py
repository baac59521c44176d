"""This user's cache of downloaded files and folders, ``~/.cache/allranks/data/KEY-VERSION/``, with in each:

    content/    the downloaded file or folder, read-only
    entry.json  the URI without secrets, and the size, version and checksum of each file. It is written last
    partial/    the received part of an interrupted download, which the next download continues
    lock        held by the process that downloads

Nothing is removed automatically, as in Hugging Face's cache: users remove what they no longer need.
"""

import contextlib
import fcntl
import hashlib
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from allranks.local.data import storage
from allranks.local.data.samples import suffixes_of
from allranks.local.data.storage import Remote, RemoteFile, StorageError
from allranks.plan import file_tree
from allranks.sdk.paths import cache_folder
from allranks.secrets import redact
from allranks.text import count, in_bytes

_ENTRY, _CONTENT, _PARTIAL = "entry.json", "content", "partial"
_PART = ".allranks-part"
_BLOCK = 1 << 22
"""Bytes per request. With `_AT_ONCE`, it bounds the memory in use."""

_AT_ONCE = 8
_TRIES = 5
"""Number of consecutive failed requests after which the download fails."""

_SIGNED = re.compile(r"[?&](?:sig|(?:X-(?:Amz|Goog)-)?Signature)=", re.IGNORECASE)


@contextlib.contextmanager
def _progress(uri: str, size: int) -> Iterator[Callable[[int], object]]:
    """Show the progress of a download of `size` bytes on standard error, as a bar on a terminal, else as a line. Yield
    a function that the caller calls with the number of bytes received."""
    # Only a download shows its progress.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        console.print(f"downloading {uri} ({in_bytes(size)})", soft_wrap=True, markup=False, highlight=False)
        yield bool
        return
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(uri if len(uri) < 50 else f"...{uri[-47:]}", total=size or None)
        yield lambda arrived: bars.advance(bar, arrived)


@dataclass(frozen=True)
class Copy:
    """The local copy of a remote file or folder.

    text:     a description: the URI without secrets, the size and the checksum
    suffixes: the number of files of a folder by suffix, including those that were not chosen
    """

    path: Path
    text: str
    suffixes: Mapping[str, int]


def local_copy(
    uri: str,
    kind: str,
    *,
    offline: bool = False,
    part: str = "",
    choose: Callable[[Sequence[str]], Sequence[str]] = list,
) -> Copy:
    """Return the local copy of a remote file or folder. Download it unless the same version is in the cache.

    kind:    the type of the port
    offline: whether to use the last copy without a request to the service. Used also if the service does not answer
    part:    a description of the part of a folder to download; "" for all of it
    choose:  returns the files of that part

    Raise StorageError.
    """
    root = cache_folder("data")
    # A signature differs from one day to the next.
    unsigned = uri.partition("?")[0] if _SIGNED.search(uri) else uri
    key = hashlib.sha256(unsigned.encode()).hexdigest()[:16]
    note = ""
    remote = None
    suffixes: Mapping[str, int] = {}
    if not offline:
        try:
            remote = storage.find(uri, kind)
        except StorageError as error:
            if error.fix or not _last(root, key, part):
                raise
            note = f"; the service does not answer ({error.reason}), so this is the last copy"
    if remote is not None and not remote.is_file:
        suffixes = suffixes_of(remote.files)
        remote = replace(remote, files={name: remote.files[name] for name in choose(list(remote.files))})
    folder = root / f"{key}-{remote.digest()}" if remote else _last(root, key, part)
    if folder is None:
        raise StorageError("it is not in the cache, and --offline allows no download", "run it once without --offline")
    if remote is not None:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one process downloads at a time
            if not (folder / _ENTRY).exists():
                own = {"uri": redact(uri), "is_file": remote.is_file, "part": part, "suffixes": suffixes}
                _download(remote, own, uri, folder)
    entry = _entry(folder)
    files, is_file = entry["files"], entry["is_file"]
    path = folder / _CONTENT / next(iter(files)) if is_file else folder / _CONTENT
    checksums = [file["sha256"] for file in files.values()]
    checksum = checksums[0] if is_file else hashlib.sha256("".join(checksums).encode()).hexdigest()
    amount = "" if is_file else f"{count(len(files), 'file')}, "
    text = f"{entry['uri']}: {amount}{in_bytes(entry['size'])}, sha256 {checksum[:16]}{note}"
    return Copy(path, text, entry["suffixes"])


def _entry(folder: Path) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads((folder / _ENTRY).read_text("utf-8"))
    return entry


def _last(root: Path, key: str, part: str) -> Path | None:
    """Return the latest entry of a key with that part of a folder; None if there is none."""
    entries = [path.parent for path in root.glob(f"{key}-*/{_ENTRY}")]
    entries = [folder for folder in entries if (entry := _entry(folder))["is_file"] or entry["part"] == part]
    return max(entries, key=lambda folder: (folder / _CONTENT).stat().st_ctime, default=None)


def _download(remote: Remote, entry: dict[str, Any], uri: str, folder: Path) -> None:
    """Download into an entry. Raise StorageError on failure, and leave the received data in `partial`.

    entry: the fields of its file, except the list of files
    """
    partial, content = folder / _PARTIAL, folder / _CONTENT
    if content.exists():  # the process was killed before the entry was written
        content.rename(partial)
    partial.mkdir(exist_ok=True)
    needed = remote.size - sum(path.stat().st_size for path in partial.rglob("*") if path.is_file())
    free = shutil.disk_usage(folder.parent).free
    if needed > free:
        fix = f"free some space, for example by removing copies in {folder.parent} that are no longer needed"
        raise StorageError(f"it has {in_bytes(needed)}, but {folder.parent} has {in_bytes(free)} free", fix)
    stop = threading.Event()
    try:
        with (
            _progress(redact(uri), remote.size) as advance,
            ThreadPoolExecutor(min(_AT_ONCE, len(remote.files) or 1)) as pool,
        ):
            tasks = {
                name: pool.submit(_download_file, remote.system, file, partial / name, advance, stop)
                for name, file in remote.files.items()
            }
            try:
                files = {name: {**asdict(remote.files[name]), **task.result()} for name, task in tasks.items()}
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
    except (file_tree.StoppedError, StorageError):
        raise
    except Exception as error:
        raise storage.storage_error(error, uri) from error
    for file in files.values():
        file.pop("path")
    size = sum(file["size"] for file in files.values())
    (folder / f"{_ENTRY}.new").write_text(json.dumps({**entry, "size": size, "files": files}, indent=1), "utf-8")
    partial.rename(content)
    (folder / f"{_ENTRY}.new").rename(folder / _ENTRY)


def _download_file(
    system: Any, file: RemoteFile, target: Path, advance: Callable[[int], object], stop: threading.Event
) -> dict[str, Any]:
    """Download one file, or the rest of an interrupted download. Return its size and its checksum."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}{_PART}")
    if target.exists():
        target.chmod(0o644)
        target.rename(part)
    sha256 = hashlib.sha256()
    with part.open("ab+") as sink:
        sink.seek(0)
        while block := sink.read(_BLOCK):
            sha256.update(block)
            advance(len(block))
        most, requests, failures, size = sink.tell(), 0, 0, _BLOCK
        while not requests if file.size is None else sink.tell() < file.size:
            error: Exception = StorageError(f"{target.name} ended after {sink.tell()} of {file.size} bytes")
            try:
                with system.open(file.path, "rb", block_size=_BLOCK, cache_type="none") as source:
                    if sink.tell() and not _seek(source, sink.tell()):
                        sha256 = hashlib.sha256()
                        advance(-sink.tell())
                        sink.truncate(0)
                    while block := source.read(size):
                        file_tree.check(stop)
                        sink.write(block)
                        sha256.update(block)
                        advance(len(block))
                        size = min(2 * size, _BLOCK)
                requests += 1
            except (FileNotFoundError, PermissionError, file_tree.StoppedError):
                raise
            except Exception as cut:
                error = cut
            failures, most = (0, sink.tell()) if sink.tell() > most else (failures + 1, most)
            size = max(size >> 1, _BLOCK >> 6)  # the interrupted block is lost
            if failures > _TRIES:
                raise error
            stop.wait(min(0.1 * 2**failures, 5) if failures else 0)
        size = sink.tell()
    if size != (file.size or size):
        part.unlink()
        raise StorageError(f"the download of {target.name} has {size} bytes, not {file.size}", "run it again")
    is_in_parts = size > _BLOCK or requests != 1  # which may be of two versions
    if is_in_parts and storage.remote_file(system.info(file.path)).version != file.version:
        part.unlink()
        raise StorageError(f"{target.name} changed while it was downloaded", "run it again")
    part.chmod(0o444)
    part.rename(target)
    return {"size": size, "sha256": sha256.hexdigest()}


def _seek(source: Any, offset: int) -> bool:
    """Seek to an offset. Return False if the service does not support it."""
    try:
        source.seek(offset)
    except ValueError:
        return False
    return True
