"""Write releases into a folder from which `az ml` can register them, and update such a folder.

The folder has a manifest with the digest of each exported file. Other files are not changed. An exported file that was
edited is neither overwritten nor removed.
"""

import contextlib
import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from allranks.catalog.releases import Release, digest_of_file
from allranks.errors import InputError, Problem, raise_any
from allranks.workspace import write_file

MANIFEST = ".allranks-export.json"
SCRIPT, README = "register.sh", "README.md"


class Exported(NamedTuple):
    """The changes of the folder's files, by relative path."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def export(releases: Sequence[Release], staged: Path, target: Path, registry: str = "") -> Exported:
    """Update the folder to contain the releases.

    staged:   the folder that `releases.release` wrote
    registry: for the script; "": a workspace

    Raise InputError, without writing anything, if other files are in the way, or if the folder has no manifest and is
    not empty.
    """
    (staged / README).write_text(_readme(releases, registry), encoding="utf-8")
    (staged / SCRIPT).write_text(_script(releases, registry), encoding="utf-8")
    (staged / SCRIPT).chmod(0o755)
    files = (path for path in staged.rglob("*") if path.is_file())
    incoming = {path.relative_to(staged).as_posix(): digest_of_file(path) for path in files}
    before = _manifest(target)
    existing = {name: digest_of_file(target / name) for name in {*before, *incoming} if (target / name).is_file()}
    _refuse(target, incoming, before, existing)
    target.mkdir(parents=True, exist_ok=True)
    _write_manifest(target, {**incoming, **before})  # so that an interrupted export can be repeated
    written = [name for name, digest in sorted(incoming.items()) if existing.get(name) != digest]
    for name in written:
        _copy(staged / name, target / name)
    removed = sorted(name for name in before if name not in incoming and name in existing)
    for name in removed:
        (target / name).unlink()
        with contextlib.suppress(OSError):
            os.removedirs((target / name).parent)  # those that are empty
    _write_manifest(target, incoming)
    return Exported(tuple(written), tuple(removed), tuple(sorted({*incoming} - {*written})))


def _manifest(target: Path) -> dict[str, str]:
    """Return the exported files with their digests. Raise InputError if the folder is not an export."""
    if not target.exists():
        return {}
    fix = "use an empty folder, or the folder of an earlier export"
    if not target.is_dir():
        raise InputError(Problem(str(target), "it is a file", "a folder", fix))
    if not any(target.iterdir()):
        return {}
    try:
        recorded = json.loads((target / MANIFEST).read_text(encoding="utf-8"))["files"]
        return {str(name): str(digest) for name, digest in recorded.items()}
    except FileNotFoundError:
        found = f"it is not empty, and has no {MANIFEST}"
        raise InputError(Problem(str(target), found, "an empty folder, or an earlier export", fix)) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(Problem(str(target / MANIFEST), "it cannot be read", "an export's manifest", fix)) from None


def _refuse(target: Path, incoming: Mapping[str, str], before: Mapping[str, str], existing: Mapping[str, str]) -> None:
    """Raise InputError for files that an export must not overwrite or remove."""
    problems = []
    for name, digest in sorted(existing.items()):
        if digest in (before.get(name), incoming.get(name)):
            continue
        found = "it was changed since it was exported" if name in before else "it was not written by an export"
        fix = "move it elsewhere, or remove it"
        problems.append(Problem(str(target / name), found, "an exported file", fix))
    for name in sorted({*incoming, *before}):
        # Links and dots must not lead outside of the folder.
        place = str(target / name)
        if target.exists() and not (target / name).resolve().is_relative_to(target.resolve()):
            problems.append(Problem(place, "it is outside of the folder", "a file inside", "remove the link"))
        elif (target / name).is_dir():
            problems.append(Problem(place, "it is a folder", "an exported file", "move it elsewhere"))
    raise_any(problems)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.allranks-half")
    shutil.copyfile(source, partial)
    partial.chmod(source.stat().st_mode & 0o777)
    os.replace(partial, target)


def _write_manifest(target: Path, files: Mapping[str, str]) -> None:
    write_file(target / MANIFEST, json.dumps({"files": files}, indent=1, sort_keys=True) + "\n")


def _script(releases: Sequence[Release], registry: str) -> str:
    options = (
        f"--registry-name {shlex.quote(registry)}" if registry else "--workspace-name WORKSPACE --resource-group GROUP"
    )
    lines = [
        "#!/bin/sh",
        "# Registers everything in order of dependency. Versions that exist already are skipped.",
        f"# ./{SCRIPT} {options}",
        "set -eu",
        'cd "$(dirname "$0")"',
    ]
    for release in releases:
        show = f"az ml {release.kind} show --name {shlex.quote(release.name)} --version {shlex.quote(release.version)}"
        create = f"az ml {release.kind} create --file {shlex.quote(release.yaml.as_posix())}"
        lines.append(f'{show} "$@" >/dev/null 2>&1 || {create} "$@"')
    return "\n".join(lines) + "\n"


def _readme(releases: Sequence[Release], registry: str) -> str:
    rows = [f"| {each.kind} | `{each.name}` | `{each.version}` | `{each.yaml.as_posix()}` |\n" for each in releases]
    where = f" of the registry {registry}" if registry else ""
    return (
        "# Components for Azure ML\n\n"
        f"Written by `allranks register --to`. Each folder loads by itself. `./{SCRIPT}` registers them in this order, "
        f"environments first, since components name the environments{where} by their versions:\n\n"
        f"| | name | version | file |\n|---|---|---|---|\n{''.join(rows)}\n"
        "A version ends in a digest of the content: the same content has the same version.\n"
    )
