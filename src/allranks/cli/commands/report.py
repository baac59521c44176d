"""`allranks report`: pack what an issue about a run needs into one file."""

from __future__ import annotations

import json
import os
import platform
import zipfile
from pathlib import Path
from typing import Annotated, Any

from allranks import engine_log
from allranks.cli.console import console, to_json
from allranks.cli.options import FolderOption, RunArgument, YesOption, confirm, option
from allranks.errors import InputError, Problem
from allranks.history import secret_values, stored
from allranks.history.formatting import in_bytes
from allranks.history.records import RunRecord
from allranks.history.workspace import Workspace
from allranks.secrets import redact


def report(
    identity: RunArgument = "latest",
    output: Annotated[
        Path | None, option("--output -o", "File to write. Default: allranks-report-RUN.zip in this folder.", "FILE")
    ] = None,
    yes: YesOption = False,
    workspace: FolderOption = None,
) -> None:
    """Pack what an issue about a run needs into one file.

    It holds the engine's log, the plan, the run's record with its messages and the last log lines of a failed rank,
    the versions of packages, and the facts of this machine. It holds no code, no data and no values of environment
    variables, and secrets are masked. The content is listed first, and you are asked before the file is written.
    """
    place, record = stored.find(Workspace.at(workspace), identity)
    output = output or Path(f"allranks-report-{record.id}.zip")
    if output.exists():
        raise InputError(Problem(str(output), "it exists, and is not overwritten", "a new file", "--output FILE"))
    known = secret_values.known(record)
    contents = {name: redact(text, known) for name, text in _contents(place, record).items()}
    out = console()
    for name, text in contents.items():
        out.print(f"  {name:<13}  {in_bytes(len(text.encode())):>8}  {_DESCRIPTIONS[name]}", soft_wrap=True)
    confirm(f"Write them to {output}?", "allranks report", yes)
    with zipfile.ZipFile(output, "x", zipfile.ZIP_DEFLATED) as file:
        for name, text in contents.items():
            file.writestr(name, text)
    out.print(f"written  {output}; read it before you attach it to an issue", soft_wrap=True)


_DESCRIPTIONS = {
    "engine.log": "what the engine did, and when",
    "plan.json": "the compiled pipeline, without the values of environment variables",
    "run.json": "the states of steps and ranks, messages, and the last lines of a failed rank",
    "machine.json": "versions, cores, memory, kernel, GPUs, kind of instances",
    "packages.txt": "the installed packages",
}


def _contents(workspace: Workspace, record: RunRecord) -> dict[str, str]:
    from importlib.metadata import distributions

    from allranks.history.store import Store
    from allranks.plan.secrets import shown

    with Store(workspace.database, reads=True) as store:
        plan = json.loads(store.plan(record.id))
    log = Path(record.folder) / engine_log.FILE
    packages = sorted({f"{found.name}=={found.version}" for found in distributions()}, key=str.lower)
    return {
        "engine.log": log.read_text(encoding="utf-8", errors="replace") if log.is_file() else "",
        "plan.json": json.dumps(_without_values(shown(plan)), indent=2),
        "run.json": to_json(_without_values(json.loads(to_json(record)))),
        "machine.json": to_json(_machine(record)),
        "packages.txt": "\n".join(packages) + "\n",
    }


def _without_values(tree: Any) -> Any:
    """Return a plan's or a record's JSON without the values of environment variables."""
    if isinstance(tree, list):
        return [_without_values(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        name: dict.fromkeys(value, "...")
        if name == "environment_variables" and isinstance(value, dict)
        else _without_values(value)
        for name, value in tree.items()
    }


def _machine(record: RunRecord) -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    from allranks.local import gpus

    versions = {}
    for package in ("allranks", "azure-ai-ml", "torch"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = ""
    return {
        "versions": versions | {"Python": platform.python_version()},
        "cores": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "gpus": list(gpus.found(os.environ)),
        "instances": record.instances,
    }
