"""Components that differ in launch or environment, generated from one spec and a table of variants.

Beside `NAME/component.yaml`, a `variants.yaml` maps the name of each variant to a merge patch (`merge_patch`) of that
spec. Each variant becomes `NAME/VARIANT/component.yaml`, which uses the code of NAME. If the command of NAME has
`--spec component.yaml`, that of the variant names the variant's file, for `allranks.runtime.arguments`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.components.find import VARIANTS
from allranks.components.merge_patch import merged, mismatches
from allranks.components.ports import port_specs, rank
from allranks.components.spec_text import spec_text
from allranks.errors import InputError, Problem
from allranks.sdk.yaml_lines import at, read_mapping

TABLE = VARIANTS
SPEC = "component.yaml"
COMMAND = "allranks components --write-variants"

_HEADER = re.compile(r"# Generated from \.\./variants\.yaml")


@dataclass(frozen=True)
class Variant:
    """A generated spec. key: its entry in the table; text: what the file contains"""

    table: Path
    key: str
    path: Path
    text: str


def variants_of(folder: Path) -> tuple[Variant, ...]:
    """Return the variants of the component in a folder; none if it has no table.

    Raise InputError if the table cannot be applied to the spec.
    """
    table = folder / TABLE
    if not table.is_file():
        return ()
    if not (folder / SPEC).is_file():
        raise InputError(Problem(str(table), f"there is no {SPEC} beside it", "a spec that the variants change"))
    base, patches = read_mapping(folder / SPEC), read_mapping(table)
    problems = [problem for key, patch in patches.items() for problem in _mistakes(table, str(key), patch, base)]
    if problems:
        raise InputError.of(problems)
    return tuple(_variant(folder, str(key), patch, base) for key, patch in patches.items())


def write(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Write the variants of the components in these folders that are out of date, and return their files.

    Raise InputError, before anything is written, if a table cannot be applied, or a file of that name was not
    generated.
    """
    stale = [variant for folder in folders for variant in variants_of(folder) if _text(variant.path) != variant.text]
    own = [variant for variant in stale if variant.path.exists() and not _HEADER.match(_text(variant.path))]
    if own:
        raise InputError.of(
            Problem(
                at(variant.table, variant.key),
                f"{variant.path} exists and was not generated",
                "a name that no component has",
                "remove that file, or rename the variant",
            )
            for variant in own
        )
    for variant in stale:
        variant.path.parent.mkdir(parents=True, exist_ok=True)
        variant.path.write_text(variant.text, encoding="utf-8")
    return tuple(variant.path for variant in stale)


def check(specs: Sequence[Path]) -> Iterator[Problem]:
    """Yield the problems of the tables that belong to these specs: mistakes, and variants that are out of date."""
    folders = dict.fromkeys(folder for spec in specs if spec.name == SPEC for folder in _folders(spec))
    for folder in folders:
        try:
            variants = variants_of(folder)
        except InputError as error:
            yield from error.problems
            continue
        for variant in variants:
            if _text(variant.path) != variant.text:
                found = "is out of date" if variant.path.exists() else "is missing"
                where, expected = at(variant.table, variant.key), "the spec with the variant's changes"
                yield Problem(where, f"{variant.path} {found}", expected, f"run {COMMAND}")
        paths = {variant.path.resolve() for variant in variants}
        for spec in specs:
            if _base(spec) == folder.resolve() and spec.resolve() not in paths:
                expected = f"a variant in {folder / TABLE}"
                yield Problem(f"{spec}:1", f"it is generated, but {TABLE} has no such variant", expected, "remove it")


def _folders(spec: Path) -> Iterator[Path]:
    """Yield the folders whose tables belong to a spec: its own, and that of the spec it was generated from."""
    if (spec.parent / TABLE).is_file():
        yield spec.parent
    if _HEADER.match(_text(spec)):
        yield spec.parent.parent


def _base(spec: Path) -> Path | None:
    return spec.parent.parent.resolve() if _HEADER.match(_text(spec)) else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _mistakes(table: Path, key: str, patch: Any, base: Mapping[str, Any]) -> Iterator[Problem]:
    if not isinstance(patch, Mapping):
        fix = "write what differs, such as: distribution: {type: mpi}"
        yield Problem(at(table, key), f"{type(patch).__name__}", "the keys that differ from the spec's", fix)
        return
    if key == table.parent.name or not re.fullmatch(r"[a-z][a-z0-9_]*", key):
        expected = "lower-case letters, digits and underscores, and not the spec's own name"
        yield Problem(at(table, key), f"variant {key!r}", expected, "rename it")
    for keys, reason in mismatches(base, patch):
        yield Problem(at(table, key, *keys), reason, f"a change of {table.parent / SPEC}", "correct the variant")


def _variant(folder: Path, key: str, patch: Mapping[str, Any], base: Mapping[str, Any]) -> Variant:
    prefix = str(base.get("name", "")).removesuffix(folder.name)
    spec = merged(base, {"name": prefix + key, **patch})
    if "code" in spec:
        spec["code"] = _from_below(spec["code"])
    if isinstance(command := spec.get("command"), str):
        spec["command"] = re.sub(rf"--spec {SPEC}\b", f"--spec {key}/{SPEC}", command)
    if includes := spec.get("additional_includes"):
        # A spec that is included, for code that is elsewhere, is that of the variant.
        spec["additional_includes"] = [f"../{key}" if include == SPEC else _from_below(include) for include in includes]
    environment = spec.get("environment")
    if isinstance(environment, str) and environment.startswith("file:"):
        spec["environment"] = f"file:{_from_below(environment.removeprefix('file:'))}"
    if isinstance(inputs := spec.get("inputs"), dict):
        spec["inputs"] = _in_order(inputs)
    header = f"# Generated from ../{TABLE} by: {COMMAND}\n"
    return Variant(folder / TABLE, key, folder / key / SPEC, header + spec_text(spec))


def _from_below(path: Any) -> Any:
    """Return a path of the base's folder as the folder of a variant, which is in it, names it."""
    if not isinstance(path, str) or ":" in path or os.path.isabs(path):
        return path
    return os.path.normpath(os.path.join("..", path)).replace(os.sep, "/")


def _in_order(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs in the order that the designer needs. Those that a patch adds are at the end so far."""
    ports = {port.name: port for port in port_specs(inputs)}
    return dict(sorted(inputs.items(), key=lambda item: rank(ports[str(item[0])])))
