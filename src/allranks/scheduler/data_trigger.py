"""The content of the input that a schedule's data trigger names, as a digest.

The digest of local data covers all names and bytes. The digest of remote data covers the names, sizes and versions that
the service lists.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path as FilePath

from allranks.errors import InputError, Problem, did_you_mean
from allranks.history import secret_values
from allranks.local.attempt.digests import FileDigests
from allranks.local.data import storage
from allranks.local.data.storage import StorageError
from allranks.plan import codec, digest
from allranks.plan.file_tree import Stop
from allranks.plan.graph import Plan
from allranks.plan.ports import Path
from allranks.plan.secrets import restored
from allranks.scheduler.ledger import Entry, Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.sdk.paths import is_downloadable
from allranks.secrets import redact
from allranks.workspace import Workspace


def content_of(plan: Plan, name: str, where: str, workspace: Workspace, stop: Stop | None = None) -> str:
    """Return a digest of the data of a pipeline's input. where: the schedule, for messages

    Raise InputError if it has no such data or the data cannot be listed, and StoppedError once `stop` is set.
    """
    types = {port.name: port.type for port in plan.graph.inputs}
    data = {port.name: port.value for port in plan.graph.inputs if isinstance(port.value, Path)}
    where = f"{where}, key tags.allranks.on_change"
    if name not in data:
        found = f"{name}, {'which has no data' if name in types else 'which the pipeline does not have'}"
        expected = f"an input with data: {', '.join(data) or 'the pipeline has none'}"
        raise InputError(Problem(where, found, expected, did_you_mean(name, data)))
    value = data[name]
    try:
        if is_downloadable(value.path):
            remote = storage.find(value.path, value.type or types[name])
            if not all(file.version for file in remote.files.values()):
                raise StorageError("the service reports neither versions nor times of its files")
            return remote.digest()
        with contextlib.closing(FileDigests(workspace.file_digests)) as known:
            return digest.of_path(FilePath(value.path), stop, known)
    except OSError as error:
        found = f"{name}, {redact(value.path)}: it cannot be listed: {error.strerror or error}"
        fix = getattr(error, "fix", "") or "correct the input"
        raise InputError(Problem(where, found, "data that can be listed", fix)) from None


@contextlib.contextmanager
def looking(paths: SchedulerPaths) -> Iterator[Callable[[Entry], str | None]]:
    """Yield a function that returns the digest of a schedule's data, or None while another thread computes it, which
    may take minutes. The function raises InputError as `content_of` does."""
    looks: dict[str, Future[str]] = {}
    stop = threading.Event()

    def look(entry: Entry) -> str | None:
        if entry.name not in looks:
            looks[entry.name] = pool.submit(_content, paths, entry, stop)
        return looks.pop(entry.name).result() if looks[entry.name].done() else None

    with ThreadPoolExecutor(1) as pool:
        try:
            yield look
        finally:
            stop.set()


def _content(paths: SchedulerPaths, entry: Entry, stop: Stop) -> str:
    with Ledger(paths.ledger) as ledger:
        text = restored(ledger.plan(entry.name), secret_values.load(paths.secrets(entry.name)))
    where = f"schedule {entry.name} ({entry.source})"
    return content_of(codec.loads(text), entry.policy.on_change, where, paths.workspace, stop)
