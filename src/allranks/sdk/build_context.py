"""An environment's build context as it is uploaded: the files of its folder, and the Dockerfile with what it includes.

A Dockerfile has no instruction for a text that it shares with others. A line ``# allranks: include PATH`` names one: it
is replaced by the file at PATH, which is relative to the file with the line. It has a meaning only in files with
Dockerfile in their name.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.sdk.files import FileList, list_path
from allranks.sdk.paths import cache_folder, shown
from allranks.workspace import write_file

DOCKERFILE = "Dockerfile"
_INCLUDE = re.compile(r"^# allranks: include (\S+)$", re.MULTILINE)
_DEEPEST = 8


def context_of(folder: Path, where: str = "") -> FileList:
    """Return the files of a build context. where: the place that messages name; by default the folder

    Raise InputError if one of them, or a file that a Dockerfile includes, cannot be read.
    """
    listed = list_path(folder, where or str(folder))
    written = {name: _written(path) for name, path in listed.files.items() if DOCKERFILE in path.name}
    return replace(listed, files={**listed.files, **written})


def _written(dockerfile: Path) -> Path:
    """Return the file with the text of a Dockerfile: itself, or one in the user's cache if it includes others."""
    if b"# allranks: include " not in dockerfile.read_bytes():
        return dockerfile
    text = dockerfile_text(dockerfile)
    file = cache_folder("dockerfiles") / hashlib.sha256(text.encode()).hexdigest()[:24] / dockerfile.name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)
    return file


def dockerfile_text(file: Path, included_from: tuple[str, ...] = ()) -> str:
    """Return the text of a Dockerfile with the files that it includes. Raise InputError if one cannot be read.

    included_from: the lines that led to the file
    """
    try:
        if len(included_from) > _DEEPEST:
            raise ValueError("it includes itself")
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        where = included_from[-1] if included_from else shown(file)
        found = f"{shown(file)}: {getattr(error, 'strerror', None) or error}"
        raise InputError(Problem(where, found, "a Dockerfile, or a part of one", "correct the path")) from None

    def included(match: re.Match[str]) -> str:
        line = f"{shown(file)}:{text.count(chr(10), 0, match.start()) + 1}"
        return dockerfile_text(file.parent / match[1], (*included_from, line)).rstrip("\n")

    return _INCLUDE.sub(included, text)
