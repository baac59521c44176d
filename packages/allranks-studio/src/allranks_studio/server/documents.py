"""The routes of documents: open a pipeline's file, change it, create one, export it."""

from pathlib import Path
from typing import Any

from allranks.catalog import shipped_folder
from allranks.errors import InputError, Problem
from allranks_studio.documents.codec import edits_from
from allranks_studio.documents.document import Conflict, Document, Refused
from allranks_studio.server import positions
from allranks_studio.server.answers import Call, Refusal
from allranks_studio.server.folders import Folder

_EMPTY = '''"""A new pipeline."""

from azure.ai.ml.dsl import pipeline


@pipeline(name="{name}", display_name="{title}")
def {name}():
    return {{}}
'''


def _state(folder: Folder, document: Document) -> dict[str, Any]:
    state = document.state()
    places, moved = positions.of_document(state["graph"]), positions.saved(folder, document.path)
    places |= {name: place for name, place in moved.items() if name in places}
    return {**state, "folder": folder.id, "positions": places}


def document(call: Call) -> dict[str, Any]:
    """Answer GET /api/document."""
    with call.studio.documents.use(call.folder, call.text("path")) as found:
        found.refresh()
        return _state(call.folder, found)


def change(call: Call) -> dict[str, Any]:
    """Answer POST /api/document/edit, /text, /undo and /redo. Raise Refusal with api.ts's Conflict or Refusal."""
    digest = call.text("digest")
    with call.studio.documents.use(call.folder, call.text("path")) as found:
        try:
            match call.text("change"):
                case "edit":
                    found.edit(digest, edits_from(call.values.get("edits")))
                case "text":
                    found.write(digest, call.text("text"))
                case "undo":
                    found.undo(digest)
                case "redo":
                    found.redo(digest)
                case _:
                    raise Refusal(404, "there is no such change")
        except Conflict as error:
            raise Refusal(409, str(error), document=_state(call.folder, found)) from None
        except Refused as error:
            raise Refusal(422, str(error), problems=error.problems, difference=error.difference) from None
        return _state(call.folder, found)


def new(call: Call) -> dict[str, Any]:
    """Answer POST /api/document/new: a new file, empty or a copy of a pipeline of the library or the project."""
    folder, path, source = call.folder, call.text("path"), call.text("source", "")
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
    with call.studio.documents.use(folder, path) as found:
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


def export(call: Call) -> dict[str, str]:
    """Answer GET /api/document/export."""
    with call.studio.documents.use(call.folder, call.text("path")) as found:
        return {"text": found.export(call.text("form"))}
