"""The components that the designer offers, and the pipelines of a folder and of the library."""

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.catalog import shipped_folder
from allranks_studio.server import folder_process
from allranks_studio.server.answers import Call

_LEFT_OUT = {"components", "environments", "node_modules", "__pycache__", "build", "dist", "site-packages"}
_DEEPEST = 4
_MOST_FILES = 5000
_LARGEST = 1 << 20
_PYTHON = re.compile(r"^@(?:\w+\.)*pipeline\b", re.MULTILINE)
_YAML = re.compile(r"^jobs\s*:", re.MULTILINE)
_TITLE = re.compile(r"""display_name\s*[=:]\s*["']?([^"'\n#]+)""")


@dataclass
class Palettes:
    """The items of each folder, with the state of the files that they were read from."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    items: dict[str, tuple[object, list[dict[str, Any]]]] = field(default_factory=dict)


def palette(call: Call) -> list[dict[str, Any]]:
    """Answer GET /api/palette."""
    folder, palettes = call.folder, call.studio.palettes
    with palettes.lock:  # two pages that are opened at once load the specs once
        state = sorted(_specs(folder.path))
        before, items = palettes.items.get(folder.id, (None, []))
        if state != before:
            items = list(folder_process.read(folder.path, "palette"))
            palettes.items[folder.id] = state, items
    return items


def _specs(root: Path) -> Iterator[tuple[str, int]]:
    """Yield the files that the palette of a folder is read from, with the times of their last changes."""
    for path, names in _walk(root, set()):
        for name in names:
            if name in ("component.yaml", "component.yml", "variants.yaml", "allranks.yaml", "allranks.yml"):
                yield os.path.join(path, name), os.stat(os.path.join(path, name)).st_mtime_ns


def pipelines(call: Call) -> list[dict[str, str]]:
    """Answer GET /api/pipelines."""
    found = [{**item, "origin": "project"} for item in _pipelines(call.folder.path)]
    return found + [{**item, "origin": "library"} for item in _pipelines(shipped_folder() / "pipelines")]


def _pipelines(root: Path) -> Iterator[dict[str, str]]:
    """Yield the files that seem to have a pipeline, by their text. Whether they do is known when one is opened."""
    looked_at = 0
    for folder, names in _walk(root, _LEFT_OUT):
        for name in names:
            path = Path(folder, name)
            is_python = path.suffix == ".py"
            if not (is_python or path.suffix in (".yml", ".yaml")) or looked_at >= _MOST_FILES:
                continue
            looked_at += 1
            try:
                text = path.read_text(encoding="utf-8") if path.stat().st_size <= _LARGEST else ""
            except (OSError, ValueError):
                continue
            if (_PYTHON if is_python else _YAML).search(text):
                title = _TITLE.search(text)
                relative = os.path.relpath(path, root)
                yield {"path": relative, "title": title[1].strip() if title else path.stem.replace("_", " ")}


def _walk(root: Path, left_out: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the folders below a root, without hidden ones, with their files. Links are not followed."""
    for path, folders, names in os.walk(root):
        depth = len(Path(path).relative_to(root).parts)
        folders[:] = sorted(name for name in folders if name not in left_out and name[0] not in "._")
        if depth >= _DEEPEST:
            folders.clear()
        yield path, sorted(names)
