"""What the routes share: the folders, the open documents, and the stream of events."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette

from allranks.errors import InputError, Problem
from allranks.version import __version__
from allranks_studio.server.events import Event, Events
from allranks_studio.server.folders import Folder
from allranks_studio.server.store_watch import StoreWatch

if TYPE_CHECKING:
    from allranks_studio.server.open_documents import OpenDocuments


class Studio:
    """One for each server. folders: by id"""

    def __init__(self, folders: Mapping[str, Folder]) -> None:
        self.folders = folders
        self.events = Events([self._look, *(StoreWatch(folder).look for folder in folders.values())])
        self._documents: OpenDocuments | None = None
        self._lock = threading.Lock()

    def folder(self, name: str) -> Folder:
        """Return the folder with an id. Raise InputError if the studio does not show it."""
        if name not in self.folders:
            expected = f"one of {', '.join(self.folders)}"
            raise InputError(Problem(f"folder {name}", "this studio does not show it", expected))
        return self.folders[name]

    @property
    def documents(self) -> "OpenDocuments":
        """The open documents."""
        from allranks_studio.server.open_documents import OpenDocuments  # takes 0.3 s to import, which runs do not need

        with self._lock:
            self._documents = self._documents or OpenDocuments()
            return self._documents

    def _look(self) -> list[Event]:
        return self._documents.look() if self._documents else []

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Watch the folders inside of the block."""
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self.events.watch())
            yield
            watching.cancel()
        if self._documents:
            self._documents.close()


def state(studio: Studio) -> dict[str, Any]:
    """Answer GET /api/state."""
    folders = studio.folders.values()
    listed = [{"id": each.id, "path": str(each.path), "read_only": each.read_only} for each in folders]
    return {"version": __version__, "folders": listed}
