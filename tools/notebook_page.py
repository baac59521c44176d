"""A notebook as a page: its cells in Markdown, with what they printed."""

import tempfile
from itertools import groupby
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config


def executed(file: Path) -> nbformat.NotebookNode:
    """Run a notebook in an empty folder, as Jupyter does. Raise CellExecutionError if a cell fails."""
    notebook = nbformat.read(file, as_version=4)
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        project = Path(folder, "project")
        project.mkdir()
        # The kernel warns of ports, to which others could listen.
        sockets = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})
        resources = {"metadata": {"path": str(project)}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources, config=sockets).execute()
    return nbformat.reads(nbformat.writes(notebook).replace(str(project), "/home/you/project"), as_version=4)


def notebook_page(notebook: nbformat.NotebookNode) -> str:
    """Return a notebook with its outputs as Markdown."""
    return "\n\n".join(part for cell in notebook.cells for part in _parts(cell)) + "\n"


def _parts(cell: nbformat.NotebookNode) -> list[str]:
    if cell.cell_type != "code":
        return [cell.source]
    parts = [_fence("python", cell.source)]
    for kind, outputs in groupby(cell.outputs, lambda output: output.output_type):
        if kind == "stream":  # in pieces, as it was written
            parts.append(_fence("text", "".join(output.text for output in outputs)))
        else:
            parts += [_shown(output.data) for output in outputs]
    return parts


def _shown(data: dict[str, str]) -> str:
    if "text/html" in data:
        return f'<div class="output" tabindex="0">{data["text/html"]}</div>'
    if "image/png" in data:
        return f"![{data['text/plain']}](data:image/png;base64,{data['image/png'].strip()})"
    return _fence("text", data["text/plain"])


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"
