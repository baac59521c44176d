"""Write releases into a folder from which `az ml` can register them, and update such a folder.

The folder has a manifest with the digest of each exported file. Other files are not changed. An exported file that was
edited is neither overwritten nor removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.components import stamps
from allranks.components.releases import Release
from allranks.errors import InputError, Problem

MANIFEST = ".allranks-export.json"
SCRIPT, README = "register.sh", "README.md"


@dataclass(frozen=True)
class Exported:
    """The changes of the folder's files, by relative path."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def export(releases: Sequence[Release], staged: Path, target: Path, registry: str = "") -> Exported:
    """Update the folder to contain the releases.

    staged:   the folder that `releases.release` wrote
    registry: for the script; "": a workspace

    Raise InputError, without writing anything, if files that no export wrote are in the way, or if the folder is not
    empty and has no manifest.
    """
    (staged / README).write_text(_readme(releases, registry), encoding="utf-8")
    (staged / SCRIPT).write_text(_script(releases, registry), encoding="utf-8")
    (staged / SCRIPT).chmod(0o755)
    coming = {path.relative_to(staged).as_posix(): stamps.of_file(path) for path in _files(staged)}
    before = _manifest(target)
    there = {name: stamps.of_file(target / name) for name in {*before, *coming} if (target / name).is_file()}
    _refuse(target, coming, before, there)
    target.mkdir(parents=True, exist_ok=True)
    # From here on the manifest lists both, so that an interrupted export can be repeated.
    _write_manifest(
        target, {name: [*before.get(name, []), *filter(None, [coming.get(name)])] for name in {*before, *coming}}
    )
    written = [name for name, digest in sorted(coming.items()) if there.get(name) != digest]
    for name in written:
        _copy(staged / name, target / name)
    removed = sorted(name for name in before if name not in coming and name in there)
    for name in removed:
        (target / name).unlink()
        _remove_empty(target, (target / name).parent)
    _write_manifest(target, {name: [digest] for name, digest in coming.items()})
    return Exported(tuple(written), tuple(removed), tuple(sorted({*coming} - {*written})))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _manifest(target: Path) -> dict[str, list[str]]:
    """Return the exported files, each with the digests that it may have. Raise InputError if the folder is not an
    export's."""
    if not target.exists():
        return {}
    fix = "give an empty folder, or the folder of an earlier export"
    if not target.is_dir():
        raise InputError(Problem(str(target), "it is a file", "a folder", fix))
    if not any(target.iterdir()):
        return {}
    try:
        found = json.loads((target / MANIFEST).read_text(encoding="utf-8"))["files"]
        return {str(name): [str(digest) for digest in digests] for name, digests in found.items()}
    except FileNotFoundError:
        said = f"it is not empty, and has no {MANIFEST}"
        raise InputError(Problem(str(target), said, "an empty folder, or an earlier export", fix)) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(Problem(str(target / MANIFEST), "it cannot be read", "an export's manifest", fix)) from None


def _refuse(target: Path, coming: Mapping[str, str], before: Mapping[str, list[str]], there: Mapping[str, str]) -> None:
    problems = []
    for name, digest in sorted(there.items()):
        if digest in (*before.get(name, ()), coming.get(name)):
            continue
        found = "it was changed since it was exported" if name in before else "it was not written by an export"
        fix = "move it elsewhere, or remove it"
        problems.append(Problem(str(target / name), found, "an exported file", fix))
    for name in sorted({*coming, *before}):
        # Never write or remove files outside of the folder, reached through links or dots.
        if target.exists() and not (target / name).resolve().is_relative_to(target.resolve()):
            problems.append(
                Problem(str(target / name), "it is outside of the folder", "a file inside", "remove the link")
            )
        elif (target / name).is_dir():
            problems.append(Problem(str(target / name), "it is a folder", "an exported file", "move it elsewhere"))
    if problems:
        raise InputError.of(problems)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}.allranks-half")
    shutil.copyfile(source, half)
    half.chmod(source.stat().st_mode & 0o777)
    os.replace(half, target)


def _remove_empty(root: Path, folder: Path) -> None:
    """Remove empty folders, up to the root."""
    with contextlib.suppress(OSError):
        while folder != root:
            folder.rmdir()
            folder = folder.parent


def _write_manifest(target: Path, files: Mapping[str, list[str]]) -> None:
    half = target / f"{MANIFEST}.half"
    half.write_text(json.dumps({"files": files}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(half, target / MANIFEST)


def _commands(releases: Sequence[Release]) -> list[str]:
    return [f"az ml {one.kind} create --file {shlex.quote(one.yaml.as_posix())}" for one in releases]


def _script(releases: Sequence[Release], registry: str) -> str:
    where = (
        f"--registry-name {shlex.quote(registry)}" if registry else "--workspace-name WORKSPACE --resource-group GROUP"
    )
    lines = [
        "#!/bin/sh",
        "# Registers everything in order of dependency. Versions that exist already are skipped.",
        f"# ./{SCRIPT} {where}",
        "set -eu",
        'cd "$(dirname "$0")"',
    ]
    for one, command in zip(releases, _commands(releases), strict=True):
        shown = f"az ml {one.kind} show --name {shlex.quote(one.name)} --version {shlex.quote(one.version)}"
        lines.append(f'{shown} "$@" >/dev/null 2>&1 || {command} "$@"')
    return "\n".join(lines) + "\n"


def _readme(releases: Sequence[Release], registry: str) -> str:
    rows = [f"| {one.kind} | `{one.name}` | `{one.version}` | `{one.yaml.as_posix()}` |" for one in releases]
    where = f" of the registry {registry}" if registry else ""
    said = f"Written by `allranks export`. Each folder loads by itself. `./{SCRIPT}` registers them in this order, "
    said += f"environments first, since components name the environments{where} by their versions:"
    return "\n".join(
        [
            "# Components for Azure ML",
            "",
            said,
            "",
            "| | name | version | file |",
            "|---|---|---|---|",
            *rows,
            "",
            "A version ends in a digest of the content: the same content has the same version.",
            "",
        ]
    )
