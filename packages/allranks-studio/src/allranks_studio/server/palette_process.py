"""The process that loads the specs of components, in the folder of a project, and prints the palette as JSON."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from allranks.catalog import shipped_specs
from allranks.catalog.declared_ports import Port
from allranks.catalog.find import FOLDER, ComponentInfo, describe, find_specs, load_all
from allranks.catalog.palette import groups, layout
from allranks.errors import InputError
from allranks.plan.assets import mapping_file
from allranks.sdk.paths import nearest
from allranks.sdk.session import session


def items() -> list[dict[str, Any]]:
    """Return the components of the project, those that allranks.yaml names, and those of the library. A component that
    cannot be loaded is left out: `allranks check` says why."""
    sources = [
        *_project(),
        *_registered(),
        *(("library", f"library:{name}", spec) for name, spec in shipped_specs().items()),
    ]
    found = []
    with session(client=False):
        for origin in ("project", "registered", "library"):
            named = {spec: name for source, name, spec in sources if source == origin}
            loaded, _ = load_all(list(named))
            infos = {spec: describe(component, spec) for spec, component in loaded}
            for group, members in groups(list(infos.values())).items():
                found += [_item(info, named[info.path], origin, group) for info in members]
    return found


def _project() -> Iterator[tuple[str, str, Path]]:
    folder = Path(FOLDER)
    if folder.is_dir():
        try:
            specs = find_specs(folder)
        except InputError:
            return
        for spec in specs:
            yield "project", f"project:{spec}", spec


def _registered() -> Iterator[tuple[str, str, Path]]:
    file = nearest(Path.cwd(), *mapping_file.NAMES)
    try:
        entries = mapping_file.read(file).entries.get("components", ()) if file else ()
    except InputError:
        return
    for entry in entries:
        if not entry.is_pattern and entry.path.is_file():
            yield "registered", f"registered:{entry.written}", entry.path


def _item(info: ComponentInfo, name: str, origin: str, group: str) -> dict[str, Any]:
    return {
        "component": name,
        "name": info.name,
        "display_name": info.display_name,
        "description": info.description,
        "version": info.version,
        "origin": origin,
        "group": group,
        "inputs": list(map(_port, info.inputs)),
        "outputs": list(map(_port, info.outputs)),
        "layout": layout(info),
    }


def _port(port: Port) -> dict[str, Any]:
    values = asdict(port)
    return {**values, "optional": port.optional is True, "enum": [str(each) for each in port.enum or ()]}


def main() -> None:
    """Print the items."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with answers:
        json.dump(items(), answers)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
