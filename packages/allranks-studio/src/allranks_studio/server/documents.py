"""The routes of documents: open a pipeline's file, change it, create one, export it."""

from pathlib import Path
from typing import Any

from allranks.catalog import shipped_folder
from allranks.errors import InputError, Problem
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
    return {{}}
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
    """Answer POST /api/document/new: a new file, empty or a copy of a pipeline of the library or the project."""
    file = folder.file(path)
    name = file.stem.lower()
    if not source and not (file.suffix == ".py" and name.isidentifier()):
        raise InputError(Problem(path, "it is not a name of a module", "such as pipelines/training.py"))
    content = _EMPTY.format(name=name, title=name.replace("_", " ").capitalize()).encode()
    if source:
        content = _source(folder, source, file.suffix).read_bytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(file, "xb") as out:
            out.write(content)
    except FileExistsError:
        raise InputError(Problem(path, "it exists", "the name of a new file", "choose another name")) from None
    with studio.documents.use(folder, path) as found:
        return _state(folder, found)


def _source(folder: Folder, source: str, suffix: str) -> Path:
    """Return the file of a pipeline of the library, or of the project."""
    shipped = shipped_folder() / "pipelines"
    file = (shipped / source).resolve() if "\0" not in source else shipped
    if not (file.is_relative_to(shipped.resolve()) and file.is_file()):
        file = folder.file(source)
    if file.suffix != suffix:
        raise InputError(Problem(source, f"it is a {file.suffix} file", f"a {suffix} file"))
    return file


def export(studio: Studio, folder: Folder, path: str, form: str) -> dict[str, str]:
    """Answer GET /api/document/export."""
    with studio.documents.use(folder, path) as found:
        return {"text": found.export(form)}
