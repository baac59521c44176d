"""`allranks logs`: print the logs of the ranks of a run, or of the engine, or pack them for an issue."""

import json
import os
import platform
import zipfile
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Any

from allranks import engine_log
from allranks.azure.watch import finder
from allranks.cli.console import console, to_json
from allranks.cli.options import FolderOption, JsonOption, RunArgument, StepArgument, YesOption, confirm
from allranks.cli.parameters import option
from allranks.cli.views.live_logs import engine_entries, print_engine_entries
from allranks.errors import InputError, Problem
from allranks.history import secret_values, stored
from allranks.history.log_reader import follow_logs, log_entries, print_logs
from allranks.history.records import RunRecord
from allranks.history.store import Store
from allranks.local import gpus
from allranks.plan.secrets import shown
from allranks.secrets import redact
from allranks.text import in_bytes
from allranks.workspace import Workspace


def logs(
    identity: RunArgument = "latest",
    step: StepArgument = None,
    rank: Annotated[int | None, option("--rank", "Number of a rank. Default: all ranks.", min=0)] = None,
    engine: Annotated[bool, option("--engine", "Print what the engine did, instead of the ranks.")] = False,
    follow: Annotated[bool, option("--follow -f", "Keep printing new lines until the run ends.")] = False,
    pack: Annotated[
        Path | None, option("--pack", "Pack what an issue about the run needs into this new ZIP file.", "FILE")
    ] = None,
    yes: YesOption = False,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Print the logs of the ranks of a run, or of the engine, or pack them for an issue.

    If there are several logs, each line begins with its step and rank. For a run that was submitted to Azure ML, new
    lines are downloaded first. --json prints an array with one object per rank: step, rank, log (the path of the file),
    and lines.

    --engine prints what the engine and its processes did: the seconds since the first line, the process, the node, the
    event and its data. Run with ALLRANKS_LOG=debug for more of them.

    --pack writes the engine's log, the plan, the run's record with its messages and the last log lines of a
    failed rank, the versions of packages, and the facts of this machine. It holds no code, no data and no values of
    environment variables, and secrets are masked. The content is listed first, and you are asked before it is written.
    """
    option = "--pack" if pack is not None else "--engine" if engine else ""
    if option and (step is not None or rank is not None or follow or json or (pack is not None and engine)):
        found = "it is given together with a step or another option of the logs"
        raise InputError(Problem(option, found, "the logs of the whole run", "remove the others"))
    find = finder(folder)
    if pack is not None:
        _pack(identity, pack, yes, folder)
    elif engine:
        _print_engine_log(find(identity))
    elif json:
        print(to_json(log_entries(find(identity), step, rank)))
    elif follow:
        follow_logs(find, identity, step, rank)
    else:
        print_logs(find(identity), step, rank)


def _print_engine_log(run: RunRecord) -> None:
    file = Path(run.folder) / engine_log.FILE
    if run.submitted is not None or not file.is_file():
        found = "it ran on Azure ML" if run.submitted else "it has no log of the engine"
        raise InputError(Problem(f"run {run.id}", found, "a run on this machine, by this version of allranks"))
    print_engine_entries(console(), engine_entries(file))


def _pack(identity: str, output: Path, yes: bool, folder: Path | None) -> None:
    workspace = Workspace.at(folder)
    record = stored.run(workspace, identity)
    if output.exists():
        raise InputError(Problem(str(output), "it exists, and is not overwritten", "a new file", "name another file"))
    known = secret_values.known(record)
    contents = {name: redact(text, known) for name, text in _contents(workspace, record).items()}
    out = console()
    for name, text in contents.items():
        out.print(f"  {name:<13}  {in_bytes(len(text.encode())):>8}  {_DESCRIPTIONS[name]}", soft_wrap=True)
    confirm(f"Write them to {output}?", "allranks logs --pack", yes)
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
    with Store(workspace.database, reads=True) as store:
        plan = json.loads(store.plan(record.id))
    log = Path(record.folder) / engine_log.FILE
    packages = {found.name: found.version for found in distributions()}
    return {
        "engine.log": log.read_text(encoding="utf-8", errors="replace") if log.is_file() else "",
        "plan.json": json.dumps(_without_values(shown(plan)), indent=2),
        "run.json": to_json(_without_values(json.loads(to_json(record)))),
        "machine.json": to_json(_machine(record, packages)),
        "packages.txt": "".join(f"{name}=={packages[name]}\n" for name in sorted(packages, key=str.lower)),
    }


def _without_values(tree: Any) -> Any:
    """Return a plan or a record as JSON without the values of environment variables."""
    if isinstance(tree, list):
        return [_without_values(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    found = {name: _without_values(value) for name, value in tree.items()}
    if isinstance(variables := found.get("environment_variables"), dict):
        found["environment_variables"] = dict.fromkeys(variables, "...")
    return found


def _machine(record: RunRecord, packages: dict[str, str]) -> dict[str, Any]:
    versions = {package: packages.get(package, "") for package in ("allranks", "azure-ai-ml", "torch")}
    return {
        "versions": versions | {"Python": platform.python_version()},
        "cores": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "gpus": list(gpus.find(os.environ)),
        "instances": record.instances,
    }
