"""The routes of documents: open a pipeline's file, change it, create one, export it."""

import os
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.project import files
from allranks_studio.documents.codec import edits_from
from allranks_studio.documents.document import Conflict, Document, Refused
from allranks_studio.server import moved_nodes, positions
from allranks_studio.server.answers import Refusal
from allranks_studio.server.folders import Folder
from allranks_studio.server.studio import Studio

_EMPTY = '''"""A new pipeline."""

from azure.ai.ml.dsl import pipeline


@pipeline(name="{name}", display_name="{title}")
def {name}():
    pass
'''


def _state(folder: Folder, document: Document) -> dict[str, Any]:
    state = document.state()
    places, moved = positions.of_document(state["graph"]), moved_nodes.saved(folder, document.path)
    places |= {name: place for name, place in moved.items() if name in places}
    return {**state, "folder": folder.id, "positions": places}


def document(studio: Studio, folder: Folder, path: str) -> dict[str, Any]:
    """Answer GET /api/document."""
    with studio.documents.use(folder, path) as found:
        found.refresh()
        return _state(folder, found)


def change(
    studio: Studio, folder: Folder, path: str, change: str, digest: str, edits: Any = None, text: str = ""
) -> dict[str, Any]:
    """Answer POST /api/document/edit, /text, /undo and /redo. Raise Refusal with api.ts's Conflict or Refusal."""
    with studio.documents.use(folder, path) as found:
        changes = {
            "edit": lambda: found.edit(digest, edits_from(edits)),
            "text": lambda: found.write(digest, text),
            "undo": lambda: found.undo(digest),
            "redo": lambda: found.redo(digest),
        }
        if change not in changes:
            raise Refusal(404, "there is no such change")
        try:
            changes[change]()
        except Conflict as error:
            raise Refusal(409, str(error), document=_state(folder, found)) from None
        except Refused as error:
            raise Refusal(422, str(error), problems=error.problems, difference=error.difference) from None
        return _state(folder, found)


def new(studio: Studio, folder: Folder, path: str, source: str = "") -> dict[str, Any]:
    """Answer POST /api/document/new: a new file, empty or a copy of a pipeline of the library, with its scripts."""
    file = folder.file(path)
    name = file.stem.lower()
    if file.suffix != ".py" or not name.isidentifier():
        raise InputError(Problem(path, "it is not a name of a module", "such as pipelines/training.py"))
    empty = _EMPTY.format(name=name, title=name.replace("_", " ").capitalize()).encode()
    content, *scripts = (files.pipeline(Path(source).stem) if source else {"": empty}).items()
    copied = {os.path.relpath(script, files.PIPELINES): text for script, text in scripts}
    files.create(file.parent, {file.name: content[1], **copied})
    with studio.documents.use(folder, path) as found:
        return _state(folder, found)


def export(studio: Studio, folder: Folder, path: str, form: str) -> dict[str, str]:
    """Answer GET /api/document/export."""
    with studio.documents.use(folder, path) as found:
        return {"text": found.export(form)}
