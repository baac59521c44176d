"""Resolve ids to files on this machine.

The lookup searches the assets registered on this machine, then ``allranks.yaml``. If neither has the id, it reports a
problem whose fix is the line to add. `skeleton` combines all missing lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from allranks.errors import InputError, Level, Problem, Rule
from allranks.plan.assets import asset_id, mapping_file
from allranks.plan.assets.asset_id import AssetId
from allranks.plan.assets.mapping_file import Entry, MappingFile
from allranks.sdk.paths import is_downloadable, is_remote, nearest, shown
from allranks.sdk.request import ComponentRequest

_SECTIONS = {kind: section for section, kind in mapping_file.SECTIONS.items()}
_SECTIONS[asset_id.STORAGE] = "data"

_PLACEHOLDERS = {
    "code": "path/to/folder",
    "components": "path/to/component.yaml",
    "environments": ".venvs/NAME",
    "models": "path/to/model",
    "datastores": "path/to/folder",
}

_NOTES = {
    "code": "a folder with the code, or a file",
    "components": "a component's YAML file, or a folder of such files",
    "data": "a file or folder",
    "datastores": "a folder with the datastore's files",
    "environments": "a virtual environment, or an environment's YAML file; without it, the Python of allranks is used",
    "models": "a model's file or folder",
}
"""The paths that the lines of a section may have."""


@dataclass(frozen=True)
class Registration:
    """The registration of a name: the path of the requested version, if it is registered, and all versions."""

    path: Path | None
    versions: tuple[str, ...]


NOTHING = Registration(None, ())
Registered: TypeAlias = Callable[[AssetId], Registration]
"""Returns the registration of an id. An id without version and label means the latest version."""


@dataclass(frozen=True)
class Line:
    """A line of ``allranks.yaml`` that would resolve an id.

    value: a placeholder for the path that the user must write
    """

    section: str
    key: str
    value: str

    def __str__(self) -> str:
        return f"{_as_key(self.key)}: {self.value}"


@dataclass(frozen=True)
class Use:
    """One lookup of a pipeline.

    where: the place that names the asset
    line:  the line that would resolve it
    path:  the result; None if there is none
    uri:   the URI of data that is downloaded when the pipeline runs; "" for other data
    """

    asset: AssetId
    where: str
    line: Line
    path: Path | None
    uri: str = ""


@dataclass
class AssetLookup:
    """Resolves the names in one pipeline.

    folder:     the pipeline's folder, in which a new ``allranks.yaml`` would be created
    file:       the ``allranks.yaml`` that applies, or None
    registered: finds assets that are registered on this machine; None if nothing is registered
    stand_ins:  folders that stand in for steps besides those of the file, by the path of the step
    stood_in:   paths of the steps that were looked up in `stand_ins`
    uses:       every lookup so far, for `allranks check --names`
    problems:   lookups without a result
    components: loaded components, by spec and name
    created:    entities that the pipeline's file creates, by collection and name
    draws:      whether the plan is only drawn: what this machine lacks is a finding, and a node without its component a
                stand-in
    """

    folder: Path
    file: MappingFile | None = None
    registered: Registered | None = None
    stand_ins: Mapping[str, Path] = field(default_factory=dict)
    stood_in: set[str] = field(default_factory=set)
    uses: list[Use] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    components: dict[tuple[Path | None, str], ComponentRequest] = field(default_factory=dict)
    created: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    draws: bool = False

    @classmethod
    def of(cls, folder: Path, registered: Registered | None) -> AssetLookup:
        """Return the lookup for a pipeline in a folder. Raise InputError if its ``allranks.yaml`` is invalid."""
        path = nearest(folder, *mapping_file.NAMES)
        return cls(folder.absolute(), mapping_file.read(path) if path else None, registered)

    def find(self, text: str, kind: str, where: str, *, required: bool = True, advice: str = "") -> Path | None:
        """Return the path of the asset with an id.

        text:     the id in any form
        kind:     the kind if the id does not contain it; a component's id must be of that kind
        where:    the place that names it, for messages
        required: whether a missing asset is a problem; otherwise return None
        advice:   an alternative to adding a line

        Return None for data that is downloaded when the pipeline runs: the last of `uses` has its URI. Raise InputError
        if the asset is missing, or if its entry in ``allranks.yaml`` cannot be used.
        """
        asset = _parse_id(text, kind, where)
        line = line_for(asset)
        registration = self.registered(asset) if self.registered else NOTHING
        # An unusable entry raises, so only a path or None is recorded.
        misses: list[str] = []  # the reasons why entries of the file were rejected
        entries = (entry for entry in self._entries(asset, line.section) if not entry.uri)
        in_file = (mapping_file.path_of(entry, asset, misses) for entry in entries)
        path = self._created(asset, where) or registration.path or next(filter(None, in_file), None)
        uri = "" if path or misses else self._uri(asset, line.section)
        self.uses.append(Use(asset, where, line, path, uri))
        if path is None and not uri and required:
            problem = self._missing(asset, where, line, registration.versions, misses, advice)
            self.problems.append(problem)
            raise InputError(problem)
        return path

    def entity(self, text: str, kind: str) -> Any:
        """Return azure-ai-ml's entity that the pipeline's file creates under an id; None if it creates none."""
        try:
            return self._entity(asset_id.parse(text, kind))
        except ValueError:
            return None

    def _entity(self, asset: AssetId) -> Any:
        entity = self.created.get((_SECTIONS.get(asset.kind, ""), asset.name))
        return entity if entity is not None and asset.version in ("", str(entity.version)) else None

    def _created(self, asset: AssetId, where: str) -> Path | None:
        """Return the path of data or a model that the pipeline's file creates."""
        entity = self._entity(asset)
        if entity is None or asset.kind not in (asset_id.DATA, asset_id.MODEL) or not entity.path:
            return None
        if is_remote(str(entity.path)):
            return self.find(str(entity.path), asset.kind, where, required=False)
        return Path(entity.base_path or self.folder, entity.path)

    def stand_in(self, path: str) -> Path | None:
        """Return the folder that stands in for the step at a path; None if the step runs.

        Raise InputError if a folder of ``allranks.yaml`` does not exist.
        """
        self.stood_in.add(path)
        if path in self.stand_ins:
            return self.stand_ins[path]
        entries = self.file.matching(mapping_file.STAND_INS, (path,)) if self.file else ()
        return next((mapping_file.existing(entry) for entry in entries), None)

    def output(self, text: str) -> str | None:
        """Return the path or URI to which ``allranks.yaml`` maps the URI of an output; None if it is not mapped.

        text: may have placeholders such as ``${{name}}``. The path need not exist
        """
        try:
            asset = asset_id.parse(text, asset_id.DATA)
        except ValueError:
            return None
        for entry in self._entries(asset, line_for(asset).section):
            uri = mapping_file.storage_uri(entry, asset)
            return uri or os.path.normpath(entry.path / mapping_file.below_entry(entry, asset))
        return None

    def _uri(self, asset: AssetId, section: str) -> str:
        """Return the URI of data that is in a storage service; "" for other data."""
        if (entity := self._entity(asset)) is not None and is_downloadable(str(getattr(entity, "path", ""))):
            return str(entity.path)
        for entry in self._entries(asset, section):
            if entry.uri:
                return mapping_file.storage_uri(entry, asset)
        return asset.path if asset.kind == asset_id.STORAGE and is_downloadable(asset.path) else ""

    def _entries(self, asset: AssetId, section: str) -> Iterator[Entry]:
        if self.file is None:
            return
        if asset.kind == asset_id.DATASTORE:
            # A path of a datastore may be mapped like a data asset.
            yield from mapping_file.of_uris(self.file.matching("data", mapping_file.spellings(asset)))
            yield from self.file.matching(section, mapping_file.spellings(replace(asset, path="")))
        elif asset.kind == asset_id.STORAGE:
            yield from mapping_file.of_uris(self.file.matching(section, mapping_file.spellings(asset)))
        else:
            yield from self.file.matching(section, mapping_file.spellings(asset))

    def _missing(
        self, asset: AssetId, where: str, line: Line, versions: tuple[str, ...], misses: list[str], advice: str
    ) -> Problem:
        found = f"this machine does not have {asset}"
        if versions:
            found += f"; registered here: {', '.join(f'{asset.name}:{version}' for version in versions[:5])}"
        for miss in misses:
            found += f"; {miss}"
        entry = next(self._entries(asset, line.section), None) if misses else None
        if entry and asset.kind in (asset_id.DATASTORE, asset_id.STORAGE):
            fix = f"put it there, for example by the pipeline that writes it, or correct the path of {entry.where}"
        elif self.file and line.section in self.file.entries:
            fix = f"add to section {line.section} of {shown(self.file.path)}:\n  {line}"
        else:
            file = self.file.path if self.file else self.folder / mapping_file.NAMES[0]
            fix = f"add to {shown(file)}:\n{line.section}:\n  {line}"
        if asset.registry and asset.kind == asset_id.COMPONENT:
            whole = f"registries/{asset.registry}/components/*: path/to/folder"
            fix += f"\nor the line for all components of the registry, in a folder of their files:\n  {whole}"
        return Problem(
            where,
            found,
            _NOTES[line.section],
            f"{fix}\n{advice}" if advice else fix,
            code="unresolved-name",
            level=Level.MACHINE,
        )


def line_for(asset: AssetId) -> Line:
    section = _SECTIONS.get(asset.kind, "data")
    if asset.kind == asset_id.DATASTORE:
        key = asset.name
    elif asset.registry or not asset.name:
        key = mapping_file.spellings(asset)[0]
    else:
        key = asset.short
    return Line(section, key, _PLACEHOLDERS.get(section, "path/to/data"))


def _parse_id(text: str, kind: str, where: str) -> AssetId:
    is_data = kind in (asset_id.DATA, asset_id.MODEL)
    is_uri = text.startswith("azureml://" if is_data else "azureml://registries/")
    rule = Rule.named("asset-id" if is_uri else "asset-reference")
    try:
        asset = asset_id.parse(text, kind)
    except ValueError as error:
        plural = kind if kind == asset_id.DATA else f"{kind}s"
        registry_id = f"azureml://registries/REGISTRY/{plural}/NAME/versions/VERSION"
        expected = f"azureml:NAME:VERSION, azureml:NAME@latest, or {registry_id}"
        found = f"{text} is not a valid id: {error}"
        raise InputError(_wrong_id(rule, kind, where, found, expected)) from None
    if kind == asset_id.CODE and asset.kind == asset_id.STORAGE:
        return replace(asset, kind=kind)
    fits = asset.kind != asset_id.COMPONENT if is_data else asset.kind == kind
    if not fits:
        found, expected = f"{text} names {_with_article(asset.kind)}", f"the id of {_with_article(kind)}"
        raise InputError(_wrong_id(rule, kind, where, found, expected))
    return asset


def _wrong_id(rule: Rule, kind: str, where: str, found: str, expected: str) -> Problem:
    # A plan without one of its components is another plan.
    return replace(rule.problem(where, found, expected, "correct the id"), ignorable=kind != asset_id.COMPONENT)


def _with_article(kind: str) -> str:
    return kind if kind in (asset_id.DATA, asset_id.STORAGE) else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _as_key(key: str) -> str:
    """Return the text as a YAML key, quoted if necessary."""
    try:
        plain = yaml.safe_load(f"{key}: 1") == {key: 1}
    except yaml.YAMLError:
        plain = False
    return key if plain else json.dumps(key)


_HEAD = """\
# Paths on this machine for the names in pipelines. Paths are relative to this file.
# Remove the # in front of a line, and write the path.
"""


def skeleton(uses: Iterable[Use]) -> str:
    """Return an ``allranks.yaml`` with a commented line for each unresolved id, below the places that need it; "" if
    all are resolved. If a registry has several, add a line for all components of the registry."""
    places: dict[Line, dict[str, None]] = {}
    registries: dict[str, set[Line]] = {}
    for use in uses:
        if use.path is None and not use.uri:
            places.setdefault(use.line, {})[use.where] = None
            if use.asset.registry and use.asset.kind == asset_id.COMPONENT:
                registries.setdefault(use.asset.registry, set()).add(use.line)
    for registry, components in registries.items():
        if len(components) > 1:
            whole = Line("components", f"registries/{registry}/components/*", "path/to/specs")
            places[whole] = {f"or all components of {registry} in one folder": None}
    text = _HEAD if places else ""
    for section, note in _NOTES.items():
        rows = [f"  # {row}\n" for line in places if line.section == section for row in (*places[line], line)]
        text += f"\n{section}:  # {note}\n{''.join(rows)}" if rows else ""
    return text
