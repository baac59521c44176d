"""An open pipeline file: its text is the truth, and the graph a way to edit it."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.workspace import write_file
from allranks_studio.documents import edits, file_text
from allranks_studio.documents.canvas import Graph, Node
from allranks_studio.documents.codec import operation, to_data
from allranks_studio.documents.comparison import difference
from allranks_studio.documents.edits import Edit
from allranks_studio.documents.fixes import located
from allranks_studio.documents.intended import intended, named
from allranks_studio.documents.placing import placed
from allranks_studio.documents.python import Python
from allranks_studio.documents.reading import Reader, Reading
from allranks_studio.documents.rewiring import node_at
from allranks_studio.documents.source import Language
from allranks_studio.documents.yaml import Yaml

MOST_UNDO = 200
"""Maximum number of changes that can be undone."""

_TYPING = "typing"
_OUTSIDE = "a change of the file"


class Conflict(Exception):
    """A change is based on another text than the file's. The document has the file's now."""


class Refused(Exception):
    """The edited text would mean something else, or cannot be read. Nothing was written.

    problems:   as `Finding` of api.ts
    difference: what the edit would also have changed
    """

    def __init__(self, problems: Sequence[dict[str, Any]], lines: Sequence[str]) -> None:
        self.problems, self.difference = list(problems), list(lines)
        super().__init__("; ".join([*self.difference, *(str(each["found"]) for each in self.problems)]))


@dataclass(frozen=True)
class _Version:
    """A content that the file had, or has. title: of the change that made it; time: of the change"""

    data: bytes
    title: str = ""
    time: float = 0.0


class Document:
    """A file and its graph. Each change is written at once. Not thread-safe."""

    def __init__(self, folder: Path, path: str, reader: Reader) -> None:
        """Open a file. path: relative to the folder

        Raise InputError if it is not a text, or in no language that can be edited, and OSError if it cannot be read.
        """
        self.folder, self.path, self._reader = folder, path, reader
        self._file = (folder / path).resolve()
        self._language = language_of(self._file)
        self._versions, self._now = [_Version(self._file.read_bytes())], 0
        self._text = file_text.decode(self._data, self._file)
        self._graph: Graph | None = None
        self._adopt(self._data, self._read(self._data))

    @property
    def digest(self) -> str:
        """The digest by which changes name the text that they are based on."""
        return hashlib.sha256(self._data).hexdigest()[:32]

    @property
    def _data(self) -> bytes:
        return self._versions[self._now].data

    @property
    def graph(self) -> Graph | None:
        """The last graph that could be read."""
        return self._graph

    def state(self) -> dict[str, Any]:
        """Return the document as `Document` of api.ts, without the positions."""
        return {
            "folder": str(self.folder),
            "path": self.path,
            "language": "python" if self._file.suffix == ".py" else "yaml",
            "digest": self.digest,
            "text": self._text,
            "name": self._reading.name,
            "display_name": self._reading.display_name,
            "description": self._reading.description,
            "compute": self._reading.compute,
            "graph": to_data(self._graph) if self._graph is not None else None,
            "current": self._reading.graph is not None,
            "findings": self._reading.findings,
            "changed": self._changed,
            "undo": self._versions[self._now].title,
            "redo": self._versions[self._now + 1].title if self._now + 1 < len(self._versions) else "",
            "read_only": not (os.access(self._file, os.W_OK) and os.access(self._file.parent, os.W_OK)),
        }

    def refresh(self) -> bool:
        """Read the file again if another program changed it, and return whether it did. Raise OSError."""
        data = self._file.read_bytes()
        if data == self._data:
            return False
        self._adopt(data, self._read(data))
        self._remember(data, _OUTSIDE)
        return True

    def edit(self, digest: str, changes: Sequence[Edit]) -> None:
        """Make all edits, or none.

        Raise Conflict, Refused, InputError if an edit is impossible, and OSError if the file cannot be written.
        """
        self._require(digest)
        if self._reading.graph is None:
            expected = "a file that can be read"
            raise InputError(Problem(self.path, "it cannot be edited while it has errors", expected, "correct it"))
        data, text, titles, read = self._data, self._text, list[str](), self._reading
        for edit in changes:
            before = read.graph
            assert before is not None
            edit = named(before, edit, read.taken)
            intended(before, edit)  # which refuses what is impossible
            text = self._language.edited(text, edit, before, self._file)
            data = file_text.encode(text, data, self._file)
            read = self._read(data)
            misfits = _misfits(edit, read.findings)
            if misfits or read.graph is None:
                raise Refused(misfits or read.findings, [])
            lines = difference(intended(before, edit, _made(edit, read.graph)), read.graph)
            if isinstance(edit, edits.SetCompute) and not edit.node and read.compute != edit.compute:
                lines = [f"compute of the pipeline: {read.compute or 'none'}, not {edit.compute or 'none'}"]
            if lines:
                raise Refused([], lines)
            titles.append(title_of(edit))
        if titles:
            title = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
            self._replace(data, read)
            self._remember(data, title)

    def write(self, digest: str, text: str) -> None:
        """Write a text that the user typed, whatever it means. Raise as `edit` does."""
        self._require(digest)
        if "\r\n" in self._text and "\r" not in text:  # an editor in the browser has its own line ends
            text = text.replace("\n", "\r\n")
        data = file_text.encode(text, self._data, self._file)
        if data != self._data:
            self._replace(data, self._read(data))
            self._remember(data, _TYPING)

    def undo(self, digest: str) -> None:
        """Undo the last change. Raise as `edit` does."""
        self._require(digest)
        self._step(-1, "undo")

    def redo(self, digest: str) -> None:
        """Make the last change again that was undone. Raise as `edit` does."""
        self._require(digest)
        self._step(1, "redo")

    def export(self, form: str) -> str:
        """Return the pipeline as text: as python, yaml, request, plan (what would run) or submit (a command).

        Raise InputError.
        """
        return self._reader.export(self._file, self._data, self.folder, form)

    def _require(self, digest: str) -> None:
        if self.refresh() or digest != self.digest:
            raise Conflict("the file was changed meanwhile")

    def _read(self, data: bytes) -> Reading:
        reading = self._reader.read(self._file, data, self.folder)
        if reading.graph is None:
            return reading
        outline = self._language.outline(file_text.decode(data, self._file))
        return replace(reading, graph=placed(reading.graph, outline), taken=outline.taken)

    def _replace(self, data: bytes, reading: Reading) -> None:
        self._require(self.digest)  # reading has taken a while
        write_file(self._file, data, stat.S_IMODE(self._file.stat().st_mode))
        self._adopt(data, reading)

    def _adopt(self, data: bytes, reading: Reading) -> None:
        """Take a content over, with what was read of it."""
        text = file_text.decode(data, self._file)
        self._changed, self._text = changed_lines(self._text, text), text
        self._graph = reading.graph or self._graph
        self._reading = replace(reading, findings=[located(each, self._graph) for each in reading.findings])

    def _remember(self, data: bytes, title: str) -> None:
        now, last = time.monotonic(), self._versions[self._now]
        goes_on = last.title == title == _TYPING and now - last.time < 2
        kept = self._versions[: self._now + (not goes_on)]
        self._versions = [*kept[-MOST_UNDO:], _Version(data, title, now)]
        self._now = len(self._versions) - 1

    def _step(self, step: int, name: str) -> None:
        if not 0 <= self._now + step < len(self._versions):
            raise InputError(Problem(self.path, f"there is nothing to {name}", "a change"))
        data = self._versions[self._now + step].data
        self._replace(data, self._read(data))
        self._now += step


def language_of(file: Path) -> Language:
    """Return the language of a file. Raise InputError if it is another one."""
    if file.suffix == ".py":
        return Python()
    if file.suffix in (".yml", ".yaml"):
        return Yaml()
    raise InputError(Problem(file.name, "it cannot be edited here", "a pipeline in Python (.py) or YAML (.yml, .yaml)"))


def title_of(edit: Edit) -> str:
    """Return an edit in words: ``set input train.epochs``, ``rename node train as fit``."""
    node, port, name = (getattr(edit, each, "") for each in ("node", "input", "name"))
    place = ".".join(filter(None, (node, port)))
    return f"{operation(type(edit)).replace('_', ' ')} {' as '.join(filter(None, (place, name)))}".rstrip()


def changed_lines(before: str, after: str) -> list[int]:
    """Return the numbers of the lines of a text that an earlier text does not have. A deletion marks the next line."""
    ours, theirs = before.splitlines(), after.splitlines()
    lines: set[int] = set()
    for kind, _, _, first, last in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind != "equal":
            lines.update(range(first + 1, max(last, first + 1) + 1))
    return sorted(line for line in lines if line <= max(1, len(theirs)))


def _made(edit: Edit, read: Graph) -> Node | None:
    """Return the node whose component only the reader knows: a new one, or a variant for a distribution."""
    match edit:
        case edits.AddNode(graph=around, name=name):
            return node_at(read, f"{around}.{name}".lstrip("."))
        case edits.SetDistribution(node=path):
            return node_at(read, path)
    return None


def _misfits(edit: Edit, findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the errors of the connection that an edit makes."""
    if not isinstance(edit, edits.SetInput) or isinstance(edit.value, edits.Literal):
        return []
    place = (edit.node, edit.input)
    return [each for each in findings if each["level"] == "error" and (each["node"], each["port"]) == place]
