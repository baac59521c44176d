"""Print uploads: each folder with its files and size, and the omitted files with the reason."""

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from rich.console import Console
from rich.text import Text

from allranks.sdk.uploads import Upload
from allranks.text import count, in_bytes, plain

_MOST_NAMES = 20
"""Maximum number of printed names per reason."""


def print_uploads(console: Console, uploads: Sequence[Upload]) -> None:
    """Print the uploads of a job."""
    for upload in uploads:
        console.print()
        title = f"{upload.kind} of {', '.join(plain(user) for user in upload.users)}"
        size = amount(len(upload.files.files), upload.files.size())
        console.print(Text.assemble((title, "bold"), f"  {size}"), soft_wrap=True)
        print_files(console, upload.files.files, upload.files.left_out)


def print_files(console: Console, names: Iterable[str], left_out: Mapping[str, str], indent: str = "  ") -> None:
    """Print the files of a folder, one line per subfolder, and the omitted files, one line per reason."""
    for folder, inside in groupby(sorted(map(os.path.split, names)), key=lambda split: split[0]):
        files = ", ".join(plain(name) for _, name in inside)
        console.print(Text.assemble(indent, (f"{plain(folder or '.')}/  ", "cyan"), files), soft_wrap=True)
    if left_out:
        console.print(Text(f"{indent}left out", style="bright_black"))
    for reason, group in groupby(sorted((reason, name) for name, reason in left_out.items()), key=itemgetter(0)):
        listed = [plain(name) for _, name in group]
        more = f" and {len(listed) - _MOST_NAMES:,} more" if len(listed) > _MOST_NAMES else ""
        line = f"{indent}  {', '.join(listed[:_MOST_NAMES])}{more}"
        console.print(Text.assemble(line, (f"  {plain(reason)}", "bright_black")), soft_wrap=True)


def uploads_json(uploads: Sequence[Upload]) -> list[dict[str, Any]]:
    return [
        {
            "kind": upload.kind,
            "steps": list(upload.users),
            "size": upload.files.size(),
            "files": list(upload.files.files),
            "left_out": left_out_json(upload.files.left_out),
        }
        for upload in uploads
    ]


def left_out_json(left_out: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "reason": reason} for name, reason in left_out.items()]


def amount(files: int, size: int) -> str:
    """Return ``3 files, 1.2 kB``."""
    return f"{count(files, 'file')}, {in_bytes(size)}"
