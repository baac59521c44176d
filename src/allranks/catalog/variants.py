"""The files of variants: components that differ in launch or environment, generated from one spec and a table.

Beside `NAME/component.yaml`, a `variants.yaml` describes the variants (`variant_specs`). `NAME/VARIANT/component.yaml`
is written when components are looked for, and those of the library when its wheel is built.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.workspace import write_file

SPEC = "component.yaml"
TABLE = "variants.yaml"
_HEADER = f"# Generated from ../{TABLE}"


def refresh(folder: Path) -> tuple[str, ...]:
    """Write the variants of the component in a folder if they are missing or out of date, and return their names.

    Generated specs that the table no longer has are removed.

    Raise InputError, before anything is written, if the table cannot be applied, or a file of that name was not
    generated.
    """
    if not _is_stale(folder):
        return ()
    from allranks.catalog.variant_specs import variants_of  # imports YAML
    from allranks.sdk.yaml_lines import at

    variants = variants_of(folder / SPEC, folder / TABLE)
    existing = {spec: _text(spec) for spec in folder.glob(f"*/{SPEC}")}
    specs = {folder / name / SPEC: f"{_HEADER}\n{text}" for name, text in variants.items()}
    if own := [spec for spec in specs if not existing.get(spec, _HEADER).startswith(_HEADER)]:
        expected, fix = "a name that no component has", "remove that file, or rename the variant"
        raise InputError.of(
            Problem(at(folder / TABLE, spec.parent.name), f"{spec} exists and was not generated", expected, fix)
            for spec in own
        )
    try:
        for spec, text in existing.items():
            if spec not in specs and text.startswith(_HEADER):
                spec.unlink(missing_ok=True)
        for spec, text in specs.items():
            if existing.get(spec) != text:
                spec.parent.mkdir(exist_ok=True)
                write_file(spec, text)
            else:
                with contextlib.suppress(OSError):  # it belongs to another user
                    os.utime(spec)
    except OSError as error:
        found = f"its variants cannot be written: {error.strerror}"
        raise InputError(Problem(str(folder), found, "a writable folder", "change its permissions")) from None
    return tuple(variants)


def refresh_below(path: Path) -> Iterator[Problem]:
    """Write the variants that belong to a path: of all components below a folder, or of the one whose file it is, also
    if a variant's file does not exist yet. Yield the problems of the tables."""
    from allranks.sdk.spec_files import files_below  # imports YAML

    tables = [file.parent for file in files_below(path, TABLE)] if os.path.isdir(path) else []
    for folder in (*tables, *path.parents[:2]):
        try:
            refresh(folder)
        except InputError as error:
            yield from error.problems


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _is_stale(folder: Path) -> bool:
    """Return whether a component has a table of variants, and a spec of one is missing or older than the component's
    spec or the table."""
    # Unlike Path.is_file, these are false in a folder that is closed to this user, which its reader reports.
    if not (os.path.isfile(folder / TABLE) and os.path.isfile(folder / SPEC)):
        return False
    written = [spec.stat().st_mtime_ns for spec in folder.glob(f"*/{SPEC}")]
    return not written or min(written) < max((folder / name).stat().st_mtime_ns for name in (SPEC, TABLE))
