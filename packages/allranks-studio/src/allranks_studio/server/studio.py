"""What the routes share: the folders, the open documents, and the stream of events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.applications import Starlette

from allranks.errors import InputError, Problem
from allranks.version import __version__
from allranks_studio.server.events import Events
from allranks_studio.server.folders import Folder
from allranks_studio.server.open_documents import OpenDocuments
from allranks_studio.server.store_watch import StoreWatch


class Studio:
    """One for each server. folders: by id"""

    def __init__(self, folders: Mapping[str, Folder]) -> None:
        self.folders = folders
        self.documents = OpenDocuments()
        self.events = Events([self.documents.look, *(StoreWatch(folder).look for folder in folders.values())])

    def folder(self, name: str) -> Folder:
        """Return the folder with an id. Raise InputError if the studio does not show it."""
        if name not in self.folders:
            expected = f"one of {', '.join(self.folders)}"
            raise InputError(Problem(f"folder {name}", "this studio does not show it", expected))
        return self.folders[name]

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Watch the folders inside of the block."""
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self.events.watch())
            yield
            watching.cancel()
        self.documents.close()


def state(studio: Studio) -> dict[str, Any]:
    """Answer GET /api/state."""
    folders = studio.folders.values()
    listed = [{"id": each.id, "path": str(each.path), "read_only": each.read_only} for each in folders]
    return {"version": __version__, "folders": listed}
