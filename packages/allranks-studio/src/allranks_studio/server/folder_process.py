"""What is read of a folder in a process of its own, whose current folder it is: the palette, and the schedules.

azure-ai-ml changes the state of its process, and the files that declare schedules are programs of the user.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from cattrs import structure

from allranks.catalog import shipped_specs
from allranks.catalog.declared_ports import Port
from allranks.catalog.find import FOLDER, ComponentInfo, describe, find_specs, load_all
from allranks.catalog.palette import groups, layout
from allranks.cli.views.schedules import listed
from allranks.errors import InputError, Problem
from allranks.plan.assets import mapping_file
from allranks.scheduler.ledger import Firing
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules.finding import find_schedules
from allranks.schedules.triggers import firings
from allranks.sdk.paths import nearest
from allranks.sdk.session import session
from allranks.workspace import Workspace

PATIENCE = 120.0
"""Seconds in which a folder must have been read."""
_NEXT = 5
_PAST = 50


def palette() -> list[dict[str, Any]]:
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


def schedules(workspace: str) -> list[dict[str, Any]]:
    """Return the schedules that the folder's files declare, and those that its scheduler knows."""
    paths, now = SchedulerPaths(Workspace(Path(workspace))), datetime.now(UTC)
    entries = paths.entries()
    with session(client=False):
        declared = {each.name: each for each in (*find_schedules(required=False), *paths.created())}
    found = []
    for name, own in sorted(declared.items()):
        entry = entries.get(name)
        row, _ = listed(name, own, entry or own, now)
        created = entry.created if entry else now
        past = paths.read(lambda ledger, name=name: list(ledger.firings(name)))  # type: ignore[misc]
        item = {
            "name": name,
            "file": own.where,
            "trigger": row["on_change"] or row["trigger"],
            "enabled": row["state"] == "enabled",
            "next": [
                each.timestamp() for each in islice(firings(own.trigger, now, created), _NEXT if row["next"] else 0)
            ],
            "history": [_firing(each) for each in past[:_PAST]],
            "scheduler": paths.scheduler(),
        }
        found.append(item)
    return found


def _firing(firing: Firing) -> dict[str, Any]:
    status = firing.status or "Running"
    return {"time": firing.at.timestamp(), "status": status, "reason": firing.reason, "run": firing.run}


def read(folder: Path, name: str, *arguments: str) -> Any:
    """Return the result of a function of this file, in a new process. Raise InputError as it does, or if it fails."""
    command = [sys.executable, "-P", "-m", __spec__.name, name, *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, encoding="utf-8", timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise InputError(Problem(f"{folder}, {name}", f"it was not read within {PATIENCE:g} s")) from None
    if done.returncode or not done.stdout:
        last = "\n".join(done.stderr.splitlines()[-3:])
        raise InputError(Problem(f"{folder}, {name}", f"the process that read it has ended: {last}"))
    answer = json.loads(done.stdout)
    if "problems" in answer:
        raise InputError(*structure(answer["problems"], list[Problem]))
    return answer["result"]


def main() -> None:
    """Print the result of the function that the arguments name, or its problems, as JSON."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a file prints is not an answer
    try:
        answer = {"result": palette() if sys.argv[1] == "palette" else schedules(*sys.argv[2:])}
    except InputError as error:
        answer = {"problems": [asdict(problem) for problem in error.problems]}
    with answers:
        json.dump(answer, answers)
    os._exit(0)  # threads of a file may never end


if __name__ == "__main__":
    main()
