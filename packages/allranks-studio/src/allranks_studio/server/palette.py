"""The components that the designer offers, and the pipelines of a folder and of the library."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from allranks.catalog import palette as catalog
from allranks.catalog import shipped_folder, shipped_specs
from allranks.catalog.declared_ports import Port, port_specs
from allranks.catalog.find import FOLDER, ComponentInfo, find_specs
from allranks.errors import InputError
from allranks.sdk import bounded_yaml
from allranks.sdk.spec_files import files_below
from allranks_studio.documents.components import registered_names
from allranks_studio.server.answers import finite
from allranks_studio.server.folders import Folder
from allranks_studio.server.studio import Studio

_MOST_FILES = 5000
_YAML = re.compile(r"^jobs\s*:", re.MULTILINE)
_PATTERNS = {".py": re.compile(r"^@(?:\w+\.)*pipeline\b", re.MULTILINE), ".yml": _YAML, ".yaml": _YAML}
_TITLE = r"""display_name\s*[=:]\s*["']?([^"'\n#]+)"""
_TITLES = re.compile(rf"^{_TITLE}|^@(?:\w+\.)*pipeline\([^()]*{_TITLE}", re.MULTILINE)


def palette(studio: Studio, folder: Folder) -> list[dict[str, Any]]:
    """Answer GET /api/palette: components of the project, those that allranks.yaml names, and those of the library.

    A spec that cannot be read is left out: `allranks check` says why. So is a component in Python, because only
    azure-ai-ml knows its ports.
    """
    studio.documents.prepare()  # the designer is opened, and opens a document next
    root, found = folder.path, list[dict[str, Any]]()
    origins: dict[str, Callable[[], Mapping[Path, str]]] = {
        "project": lambda: {spec: os.path.relpath(spec, root) for spec in find_specs(root / FOLDER)},
        "registered": lambda: {spec: name for name, spec in registered_names(root / FOLDER).items()},
        "library": lambda: {spec: name for name, spec in shipped_specs().items()},
    }
    for origin, names_of in origins.items():
        with contextlib.suppress(InputError):
            names = names_of()
            infos = [info for spec in names if (info := _declared(spec))]
            for group, members in catalog.groups(infos).items():
                found += [_item(info, f"{origin}:{names[info.path]}", origin, group) for info in members]
    return found


def _declared(spec: Path) -> ComponentInfo | None:
    """Return a component as its spec declares it, without azure-ai-ml, whose import takes 2 s; None without one."""
    try:
        tree = bounded_yaml.load_file(spec) if spec.suffix != ".py" else None
        if not isinstance(tree, Mapping) or not isinstance(tree.get("name"), str):
            return None
        distribution, resources = tree.get("distribution") or {}, tree.get("resources") or {}
        return ComponentInfo(
            name=tree["name"],
            version=str(tree.get("version", "")),
            display_name=str(tree.get("display_name") or tree["name"]),
            description=" ".join(str(tree.get("description") or "").split()),
            distribution=str(distribution.get("type", "none")).lower(),
            instance_count=int(resources.get("instance_count") or 1),
            process_count_per_instance=distribution.get("process_count_per_instance"),
            inputs=tuple(port_specs(tree.get("inputs"))),
            outputs=tuple(port_specs(tree.get("outputs"))),
            environment="",
            deterministic=True,
            path=spec,
            tags={str(name): str(value) for name, value in (tree.get("tags") or {}).items()},
        )
    except (OSError, ValueError, TypeError, AttributeError, yaml.YAMLError):
        return None


def _item(info: ComponentInfo, name: str, origin: str, group: str) -> dict[str, Any]:
    declared = {name: getattr(info, name) for name in ("name", "display_name", "description", "version")}
    return {
        **declared,
        "component": name,
        "origin": origin,
        "group": group,
        "inputs": list(map(_port, info.inputs)),
        "outputs": list(map(_port, info.outputs)),
        "layout": catalog.layout(info),
    }


def _port(port: Port) -> dict[str, Any]:
    default = port.default if isinstance(port.default, (bool, int, float)) else port.default and str(port.default)
    return {
        **asdict(port),
        "description": " ".join(port.description.split()),
        "default": finite(default) if isinstance(default, float) else default,
        "minimum": finite(port.minimum),
        "maximum": finite(port.maximum),
        "optional": port.optional in (True, "true", "True"),
        "enum": [str(each) for each in port.enum or ()],
    }


def pipelines(studio: Studio, folder: Folder) -> list[dict[str, str]]:
    """Answer GET /api/pipelines."""
    studio.documents.prepare()
    found = [{**item, "origin": "project"} for item in _pipelines(folder.path)]
    return found + [{**item, "origin": "library"} for item in _pipelines(shipped_folder() / "pipelines")]


def _pipelines(root: Path) -> Iterator[dict[str, str]]:
    """Yield the files that seem to have a pipeline, by their text. Whether they do is known when one is opened."""
    for path in islice(files_below(root, *_PATTERNS), _MOST_FILES):
        with contextlib.suppress(OSError, ValueError):
            text = bounded_yaml.read(path)
            if _PATTERNS[path.suffix.lower()].search(text):
                # The last pipeline of a file is made of the others.
                titles = ["".join(each).strip() for each in _TITLES.findall(text)]
                yield {"path": os.path.relpath(path, root), "title": [path.stem.replace("_", " "), *titles][-1]}
