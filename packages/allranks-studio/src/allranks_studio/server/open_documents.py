"""The pipelines that are edited: their files are opened once, however many pages show them."""

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allranks.errors import InputError
from allranks_studio.documents.reading import Reader
from allranks_studio.server.events import Event
from allranks_studio.server.folders import Folder

if TYPE_CHECKING:
    from allranks_studio.documents.document import Document

MOST = 50
"""Maximum documents that are open. The one that was used least recently is closed; its file has all edits."""


class OpenDocuments:
    """The open documents, by folder and path. Threads take turns, as they do for the reader."""

    def __init__(self) -> None:
        self.reader = Reader()
        self._lock = threading.RLock()
        self._documents: dict[tuple[str, str], Document] = {}
        self._digests: dict[tuple[str, str], str] = {}
        """As of the opening of each document, or of the last look."""

    def prepare(self) -> None:
        """Let the reader start, which takes seconds, before a document is opened."""
        threading.Thread(target=self.reader.start, daemon=True).start()

    @contextlib.contextmanager
    def use(self, folder: Folder, path: str) -> "Iterator[Document]":
        """Yield a document that no other thread uses meanwhile. Raise InputError or OSError if it cannot be opened."""
        from allranks_studio.documents.document import Document  # takes 0.3 s to import, which runs do not need

        folder.file(path)
        place = folder.id, path
        with self._lock:
            found = self._documents.pop(place, None) or Document(folder.path, path, self.reader)
            self._documents[place] = found
            self._digests.setdefault(place, found.digest)
            while len(self._documents) > MOST:
                del self._documents[next(iter(self._documents))]
            yield found

    def look(self) -> list[Event]:
        """Return the documents that have changed since the last look, by edits or by other programs."""
        with self._lock:
            for document in self._documents.values():
                with contextlib.suppress(OSError, InputError):  # the next request reports a removed file
                    document.refresh()
            digests = {place: document.digest for place, document in self._documents.items()}
            changed = [place for place in digests if self._digests[place] != digests[place]]
            self._digests |= digests
        return [
            {"kind": "document", "folder": folder, "path": path, "digest": digests[folder, path]}
            for folder, path in changed
        ]

    def close(self) -> None:
        self.reader.close()
