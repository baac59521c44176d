"""Variants: components that differ in launch or environment, generated from one spec and a table.

The table, `variants.yaml` beside `NAME/component.yaml`, maps the name of each variant to a merge patch (`merged`) of
the spec. `NAME/VARIANT/component.yaml` is written when components are looked for, and those of the library when its
wheel is built. A variant uses the code of the component. If the command has `--spec component.yaml`, that of the
variant names the variant's file, for `allranks.runtime.arguments`.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem, raise_any
from allranks.sdk.spec_files import files_below
from allranks.sdk.yaml_lines import at, read_mapping
from allranks.workspace import write_file

SPEC = "component.yaml"
TABLE = "variants.yaml"
_HEADER = f"# Generated from ../{TABLE}"
_SHARED_CODE = "# allranks: ignore ui-outside-folder"


def refresh(folder: Path) -> tuple[str, ...]:
    """Write the variants of the component in a folder if they are missing or out of date, and return their names.

    Generated specs that are no longer in the table are removed.

    Raise InputError, before anything is written, if the table cannot be applied, or a file to write was not generated.
    """
    if not _is_stale(folder):
        return ()
    variants = variants_of(folder / SPEC, folder / TABLE)
    existing = {spec: _text(spec) for spec in folder.glob(f"*/{SPEC}")}
    specs = {folder / name / SPEC: f"{_HEADER}\n{_SHARED_CODE}\n{text}" for name, text in variants.items()}
    expected, fix = "a name that no component has", "remove that file, or rename the variant"
    raise_any(
        Problem(at(folder / TABLE, spec.parent.name), f"{spec} exists and was not generated", expected, fix)
        for spec in specs
        if not existing.get(spec, _HEADER).startswith(_HEADER)
    )
    try:
        for spec, text in existing.items():
            if spec not in specs and text.startswith(_HEADER):
                spec.unlink(missing_ok=True)
        for spec, text in specs.items():
            if existing.get(spec) != text:
                spec.parent.mkdir(exist_ok=True)
                write_file(spec, text)
                continue
            with contextlib.suppress(OSError):  # it belongs to another user
                os.utime(spec)
    except OSError as error:
        found = f"its variants cannot be written: {error.strerror}"
        raise InputError(Problem(str(folder), found, "a writable folder", "change its permissions")) from None
    return tuple(variants)


def refresh_below(path: Path) -> Iterator[Problem]:
    """Write the variants of all components below a folder, or of the component that a file belongs to, even if a
    variant's file does not exist yet. Yield the problems of the tables."""
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
    """Return whether the component has a table, and a variant's spec is missing or out of date."""
    # Unlike Path.is_file, os.path.isfile is false in a folder that this user may not enter. Its reader reports that.
    if not (os.path.isfile(folder / TABLE) and os.path.isfile(folder / SPEC)):
        return False
    written = [spec.stat().st_mtime_ns for spec in folder.glob(f"*/{SPEC}")]
    return not written or min(written) < max((folder / name).stat().st_mtime_ns for name in (SPEC, TABLE))


def variants_of(spec: Path, table: Path) -> dict[str, str]:
    """Return the text of the spec of each variant by name. The spec of NAME goes into the folder NAME beside `spec`.

    Raise InputError if the table cannot be applied to the spec.
    """
    base, patches = read_mapping(spec), read_mapping(table)
    problems = [problem for key, patch in patches.items() for problem in _mistakes(table, spec, str(key), patch, base)]
    raise_any(problems)
    return {str(key): as_yaml(_variant(spec, str(key), patch, base)) for key, patch in patches.items()}


def _mistakes(table: Path, spec: Path, key: str, patch: Any, base: Mapping[str, Any]) -> Iterator[Problem]:
    if not isinstance(patch, Mapping):
        fix = "write the difference, such as: distribution: {type: mpi}"
        yield Problem(at(table, key), type(patch).__name__, "the keys that differ from the spec's", fix)
        return
    if key == table.parent.name or not re.fullmatch(r"[a-z][a-z0-9_]*", key):
        expected = "lower-case letters, digits and underscores, and not the spec's own name"
        yield Problem(at(table, key), f"variant {key!r}", expected, "rename it")
    for keys, reason in mismatches(base, patch):
        yield Problem(at(table, key, *keys), reason, f"a change of {spec}", "correct the variant")


def _variant(file: Path, key: str, patch: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    prefix = str(base.get("name", "")).removesuffix(file.parent.name)
    spec: dict[str, Any] = merged(base, {"name": prefix + key, **patch})
    if "code" in spec:
        spec["code"] = _from_below(spec["code"])
    if isinstance(command := spec.get("command"), str):
        spec["command"] = re.sub(rf"--spec {file.name}\b", f"--spec {key}/{file.name}", command)
    if includes := spec.get("additional_includes"):
        # The variant includes its own spec.
        spec["additional_includes"] = [
            f"../{key}" if include == file.name else _from_below(include) for include in includes
        ]
    environment = spec.get("environment")
    if isinstance(environment, str) and environment.startswith("file:"):
        spec["environment"] = f"file:{_from_below(environment.removeprefix('file:'))}"
    return spec


def _from_below(path: Any) -> Any:
    """Return a path that is relative to the base's folder as relative to the folder of a variant, which is below it."""
    if not isinstance(path, str) or ":" in path or os.path.isabs(path):
        return path
    return os.path.normpath(os.path.join("..", path)).replace(os.sep, "/")


TEXTS = ("command", "description")
"""Keys of texts in which a patch may replace parts."""


def merged(target: Any, patch: Any) -> Any:
    """Return the target with the patch applied. Neither is changed.

    A mapping is merged key by key, null removes a key, and anything else replaces the target. In place of a command or
    a description, a mapping replaces parts of the text: each key is a part, its value the replacement.
    `mismatches` returns what does not apply.
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif _is_text(key, result.get(key), value):
            result[key] = _with_parts(result[key], value)
        else:
            result[key] = merged(result.get(key), value)
    return result


def mismatches(target: Any, patch: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the keys of a patch that have no effect or an ambiguous one, each with the reason."""
    if not isinstance(patch, Mapping):
        return
    existing = target if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        path = (*keys, str(key))
        if value is None and key not in existing:
            yield path, "it removes a key that does not exist"
        elif _is_text(key, existing.get(key), value):
            for part in value:
                count = " ".join(existing[key].split()).count(" ".join(str(part).split()))
                if count != 1:
                    yield path, f"the text has {str(part)!r} {count} times, not once"
        else:
            yield from mismatches(existing.get(key), value, path)


def _is_text(key: Any, target: Any, patch: Any) -> bool:
    return key in TEXTS and isinstance(target, str) and isinstance(patch, Mapping)


def _with_parts(text: str, parts: Mapping[Any, Any]) -> str:
    text = " ".join(text.split())
    for part, value in parts.items():
        text = text.replace(" ".join(str(part).split()), " ".join(str(value or "").split()))
    return " ".join(text.split())


def as_yaml(spec: Mapping[str, Any]) -> str:
    """Return a spec as YAML. Equal specs give equal texts."""
    return yaml.safe_dump(dict(spec), sort_keys=False, width=116, allow_unicode=True)
