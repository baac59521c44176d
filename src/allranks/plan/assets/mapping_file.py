"""Read ``allranks.yaml``, which maps the names in pipelines to paths on this machine, and resolve its entries.

    code:
      training:3: train/src
      git+https://github.com/OWNER/NAME: clones/NAME
    components:
      registries/azureml/components/*: specs     # a folder of specs, searched at any depth
      train@latest: train/component.yaml
    data:
      titanic:1: data/titanic
    datastores:
      workspaceblobstore: data/blob
    environments:
      sklearn-1.5: .venvs/sklearn
    models:
      gpt2: models/gpt2
    stand_ins:
      automl: results/automl
    run_in:
      sklearn-1.5: venv

A key is an id in any form, with or without its version, or a pattern with ``*``. A value is a path, relative to the
file. Under `stand_ins`, the key is a step that does not run, and the folder contains its outputs. Under `run_in`, the
key is a step or the name of an environment, and the value is a name of `REALISED`."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Level, Problem, did_you_mean, raise_any
from allranks.plan.assets import asset_id
from allranks.plan.assets.asset_id import AssetId
from allranks.plan.environment import REALISED
from allranks.sdk import spec_files, yaml_lines
from allranks.sdk.paths import is_downloadable, is_remote, located, shown
from allranks.sdk.yaml_lines import YamlText

NAMES = ("allranks.yaml", "allranks.yml")
"""Names of the file, the usual one first."""

STAND_INS, RUN_IN = "stand_ins", "run_in"
SECTIONS = {
    "code": asset_id.CODE,
    "components": asset_id.COMPONENT,
    "data": asset_id.DATA,
    "datastores": asset_id.DATASTORE,
    "environments": asset_id.ENVIRONMENT,
    "models": asset_id.MODEL,
}
"""The sections whose keys are ids, with the kind of their ids."""

_WILDCARD = re.compile(r"[*?\[]")
_SCOPE = re.compile(r"(?:registries|subscriptions|locations|workspaces|datastores)/", re.IGNORECASE)


@dataclass(frozen=True)
class Entry:
    """One line of the file.

    key:     in the form of `spellings`
    written: as it is in the file
    path:    absolute; it may not exist
    uri:     of the data, if it is in a storage service; "" if it is at the path
    place:   file and line
    """

    section: str
    key: str
    written: str
    path: Path
    place: str
    uri: str = ""

    @property
    def where(self) -> str:
        """Return the line as named in messages."""
        return f"key {self.section}.{self.written} ({self.place})"

    @property
    def is_pattern(self) -> bool:
        return self.literal != self.key

    @property
    def literal(self) -> str:
        """Return the key up to its first wildcard."""
        return _WILDCARD.split(self.key, maxsplit=1)[0]


@dataclass(frozen=True)
class MappingFile:
    """The entries of a file by section, in order.

    run_in: path of a step or name of an environment -> a name of `REALISED`, and the line as named in messages
    """

    path: Path
    entries: Mapping[str, tuple[Entry, ...]]
    run_in: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def matching(self, section: str, spellings: tuple[str, ...]) -> Iterator[Entry]:
        """Yield the matching entries of a section: first exact keys, the most specific first, then patterns in the
        order of the file."""
        entries = self.entries.get(section, ())
        for spelling in spellings:
            yield from (entry for entry in entries if entry.key == spelling)
        for entry in entries:
            if entry.is_pattern and any(fnmatchcase(spelling, entry.key) for spelling in spellings):
                yield entry


def spellings(asset: AssetId) -> tuple[str, ...]:
    """Return the keys that match an id, the most specific first."""
    if not asset.name:
        return (asset.path,)
    if asset.kind == asset_id.DATASTORE:
        paths = (_without_prefix(str(asset)), _without_prefix(str(AssetId(asset.kind, asset.name, path=asset.path))))
        return tuple(dict.fromkeys(paths if asset.path else (*paths, asset.name)))
    plain = (asset.short, asset.name)
    if not asset.is_scoped:
        return tuple(dict.fromkeys(plain))
    whole = _without_prefix(str(asset))
    own = re.sub(r"/(?:versions|labels)/[^/]+$", "", whole)
    # An asset of a registry differs from one of the same name in the workspace.
    return tuple(dict.fromkeys((whole, own) if asset.registry else (whole, own, *plain)))


def read(path: Path) -> MappingFile:
    """Read the file. Raise InputError, with every mistake, if it is invalid."""
    text = yaml_lines.parse(path, may_be_empty=True)
    raise_any(replace(problem, level=Level.ERROR) for problem in text.warnings)
    problems: list[Problem] = []
    entries: dict[str, tuple[Entry, ...]] = {}
    run_in: dict[str, tuple[str, str]] = {}
    known = (*SECTIONS, STAND_INS, RUN_IN)
    for section, lines in text.tree.items():
        where = text.where(section)
        if section not in known:
            fix = did_you_mean(section, known, "remove it")
            problems.append(Problem(where, "there is no such section", f"one of {', '.join(known)}", fix))
        elif lines is not None and not isinstance(lines, dict):
            problems.append(Problem(where, repr(lines), "keys and paths, such as train:3: train/component.yaml"))
        elif section == RUN_IN:
            for name, way in (lines or {}).items():
                where = text.where(f"{section}.{name}")
                if way in REALISED:
                    run_in[name] = way, where
                else:
                    problems.append(Problem(where, repr(way), f"one of {', '.join(REALISED)}"))
        else:
            parsed = [_entry(text, section, key, value, problems) for key, value in (lines or {}).items()]
            entries[section] = tuple(_without_duplicates([entry for entry in parsed if entry], problems))
    raise_any(problems)
    return MappingFile(path, entries, run_in)


def _entry(text: YamlText, section: str, key: str, value: Any, problems: list[Problem]) -> Entry | None:
    where = text.where(f"{section}.{key}")
    if not isinstance(value, str) or not value.strip():
        found = "it has no path" if value in (None, "") else repr(value)
        problems.append(Problem(where, found, "a path, relative to the file"))
        return None
    uri = value if is_downloadable(value) and section in ("data", "datastores", "models") else ""
    if is_remote(value) and not uri and not value.startswith("file://"):
        fix = "get a copy of it, and name the copy"
        problems.append(Problem(where, f"{value} is not on this machine", "a path, relative to the file", fix))
        return None
    try:
        name = key if section == STAND_INS else _normalized(key, SECTIONS[section])
    except ValueError as error:
        problems.append(Problem(where, f"it is not a valid id: {error}", "a pattern, or an id such as azureml:NAME:1"))
        return None
    return Entry(section, name, key, Path(located(value, text.path.parent)), text.place(f"{section}.{key}"), uri)


def _normalized(key: str, kind: str) -> str:
    """Return the key in the form of `spellings`. Raise ValueError if it is not an id."""
    bare = _without_prefix(key)
    if _WILDCARD.search(bare):
        return bare
    asset = asset_id.parse(f"azureml://{bare}" if _SCOPE.match(bare) else key, kind)
    if kind == asset_id.DATASTORE and asset.path:
        raise ValueError("a path of a datastore belongs under data")
    by_uri = {asset_id.DATA: (asset_id.STORAGE, asset_id.DATASTORE), asset_id.CODE: (asset_id.STORAGE,)}
    if asset.kind != kind and asset.kind not in by_uri.get(kind, ()):
        raise ValueError(f"it names {'storage' if asset.kind == asset_id.STORAGE else f'a {asset.kind}'}")
    return spellings(asset)[0]


def _without_prefix(text: str) -> str:
    """Return an id without its prefix: ``registries/...``, ``subscriptions/...``, ``train:3``."""
    return text.strip().removeprefix("azureml:").lstrip("/")


def _without_duplicates(entries: list[Entry], problems: list[Problem]) -> Iterator[Entry]:
    seen: dict[str, Entry] = {}
    for entry in entries:
        if entry.key in seen:
            first = seen[entry.key]
            problems.append(Problem(entry.where, f"it duplicates {first.written} ({first.place})", "", "remove one"))
        seen[entry.key] = entry
        yield entry


def path_of(entry: Entry, asset: AssetId, misses: list[str]) -> Path | None:
    """Return the path that an entry has for an asset; None if it has none. misses: filled with the reason"""
    find = {asset_id.COMPONENT: _spec, asset_id.ENVIRONMENT: _environment}.get(asset.kind, _data)
    return find(entry, asset, misses)


def existing(entry: Entry) -> Path:
    """Return the path of an entry. Raise InputError if it does not exist."""
    if not os.path.exists(entry.path):
        found, expected = f"{shown(entry.path)} does not exist", "a path, relative to the file"
        raise InputError(Problem(entry.where, found, expected, "correct the path"))
    return entry.path


def _spec(entry: Entry, asset: AssetId, misses: list[str]) -> Path | None:
    path = existing(entry)
    if os.path.isfile(path):
        return path
    specs = spec_files.find_by_name(path, asset.name)
    latest = next(iter(specs.values()), "") if asset.label in ("", asset_id.LATEST) else None
    matches = [spec for spec, version in specs.items() if version == (asset.version or latest)]
    if len(matches) > 1:
        files = ", ".join(map(shown, matches[:5]))
        several = f"several files describe {asset.name}:{specs[matches[0]]}: {files}"
        raise InputError(Problem(entry.where, several, "one", f"name the file: {asset.short}: {shown(matches[0])}"))
    if matches:
        return matches[0]
    if specs:
        versions = [f"{version or 'no version'} ({shown(spec)})" for spec, version in specs.items()]
        misses.append(f"{shown(path)} has {asset.name} in version {', '.join(versions[:5])}")
    else:
        misses.append(f"{shown(path)} has no component {asset.name}")
    return None


def _environment(entry: Entry, asset: AssetId, misses: list[str]) -> Path | None:
    path = existing(entry)
    if os.path.isfile(path) or interpreter_in(path):
        return path
    if os.path.isdir(named := path / asset.name) and interpreter_in(named):
        return named
    misses.append(f"{shown(path)} is not a virtual environment, and contains none named {asset.name}")
    return None


def interpreter_in(folder: Path) -> Path | None:
    """Return the Python of a virtual environment; None if the folder is not one."""
    python = folder / "bin" / "python"
    return python if os.access(python, os.X_OK) else None


def _data(entry: Entry, asset: AssetId, misses: list[str]) -> Path | None:
    path = existing(entry)
    if os.path.isdir(path) and (rest := below_entry(entry, asset)):
        path = Path(os.path.normpath(path / rest))
        if not os.path.exists(path):
            misses.append(f"{shown(path)} does not exist")
            return None
    return path


def below_entry(entry: Entry, asset: AssetId) -> str:
    """Return the path of an asset relative to the folder of an entry. Raise InputError if it leads out of the
    folder."""
    below = _relative_path(entry, asset)
    if ".." in below.split("/"):
        found = f"{asset} has .. in its path, which does not lead out of a datastore"
        raise InputError(Problem(entry.where, found, "a path below it", "write the path without .."))
    return below


def _relative_path(entry: Entry, asset: AssetId) -> str:
    """Return the path of an asset relative to the folder of an entry. The part that a pattern matches is a
    subfolder."""
    if entry.section == "datastores":
        return f"{asset.name}/{asset.path}" if entry.is_pattern else asset.path
    keys = spellings(asset)
    if not entry.is_pattern or entry.key in keys:
        return ""
    if asset.name and asset.kind != asset_id.DATASTORE:
        return asset.name
    return next((text.removeprefix(entry.literal) for text in keys if text.startswith(entry.literal)), "")


def storage_uri(entry: Entry, asset: AssetId) -> str:
    """Return the URI of an asset in the storage service of an entry; "" if the entry has none."""
    return "/".join(filter(None, (entry.uri.rstrip("/"), below_entry(entry, asset)))) if entry.uri else ""


def of_uris(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Return the entries without the pattern ``*``, which matches names, not URIs."""
    return (entry for entry in entries if entry.literal)
