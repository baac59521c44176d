"""Debug ranks of one step of a job."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import debugpy
import yaml

from allranks.api import jobs
from allranks.errors import InputError, Problem
from allranks.history.observer import Observer
from allranks.history.records import RunRecord
from allranks.local import engine
from allranks.local.forkserver.request import LAUNCHERS
from allranks.local.options import Options
from allranks.local.preview import kind_of
from allranks.local.selection import Selection
from allranks.plan.graph import Pipeline, Plan, Step
from allranks.plan.walk import steps, without_labels
from allranks.workspace import Workspace
from allranks_lab.debugging.in_rank import LOCAL
from allranks_lab.debugging.session import DebugSession

ALL = "all"


def debug(
    job: Any,
    step: str,
    workspace: Workspace,
    options: Options,
    observer: Observer | None = None,
    *,
    inputs: Mapping[str, str],
    rank: str = "0",
    port: int = 0,
    terminal: bool = False,
    tell: Callable[[str], None] = print,
    warn: jobs.Warn = bool,
    report: jobs.Report = jobs.silent,
) -> RunRecord:
    """Run a step of a job, and what it needs, with a debugger in some of its ranks. Return the record of the run.

    step:         its path; "" if the job has only one
    rank:         its number, or all
    port:         of the first rank; 0: a free one for each
    terminal:     whether the debugger is pdb on this process's terminal, instead of debugpy
    tell:         is called with how to attach
    warn, report: as of `jobs.read`

    Raise InputError if there is no such step or rank, or the port is taken, or debugpy would be
    open to other users of this machine.
    """
    if terminal and rank == ALL:
        raise InputError(Problem("--pdb", "the ranks share one terminal", "one rank", "name it: --rank 0"))
    if not terminal and kind_of(options.instances).name == "loopback":
        why = "debugpy listens on a port of this machine, with which each of its users could run code as you"
        raise InputError(Problem("--instances loopback", why, "instances with their own network", "use --pdb"))
    plan = jobs.read(jobs.resolved(job), inputs, workspace, options, report=report, warn=warn)
    path, found = _step(plan, step)
    ranks = _ranks(found, path, rank)
    code = Path(found.code.folder) if found.code else Path()
    session = DebugSession(
        path,
        None if rank == ALL else ranks,
        terminal,
        os.path.dirname(debugpy.__file__),
        port,
    )
    if not terminal:
        ports = {f"rank {number}": session.port_of(number) for number in ranks}
        launch = _launch_json(path, ports, _sources(found.spec or plan.source, code))
        tell(f"To attach VS Code, add to .vscode/launch.json:\n{launch}")
    selection = Selection(until=(_selected(plan, path),))
    return engine.run(plan, workspace, replace(options, selection=selection, debug=session), observer)


def _step(plan: Plan, path: str) -> tuple[str, Step]:
    """Return the path and the step that a user names. Raise InputError if there is none."""
    known = {without_labels(each): step for each, step in steps(plan.graph)}
    if not path and len(known) == 1:
        path = next(iter(known))
    if without_labels(path) not in known:
        found = f"there is no step {path}" if path else "it does not name a step"
        raise InputError(Problem(f"job {plan.name}", found, f"one of: {', '.join(known)}"))
    return path, known[without_labels(path)]


def _ranks(step: Step, path: str, rank: str) -> tuple[int, ...]:
    """Return the ranks that a user names. Raise InputError for one that the step does not have."""
    is_ray = step.distribution.type == "ray"
    count = 1 if is_ray else len(step.distribution.processes(step.instance_count))
    if rank == ALL:
        return tuple(range(count))
    if not rank.isdecimal():
        raise InputError(Problem(f"--rank {rank}", "it is not a rank", "a number, or all"))
    # The number of workers is unknown until a launcher has started them.
    if int(rank) >= count and not any(os.path.basename(word) in LAUNCHERS for word in step.command.split()):
        expected = f"0 to {count - 1}" if count > 1 else "0"
        found = "only Ray's driver can be debugged, not its workers" if is_ray else f"step {path} has {count} ranks"
        raise InputError(Problem(f"--rank {rank}", found, expected))
    return (int(rank),)


def _selected(plan: Plan, path: str) -> str:
    """Return the innermost node that contains the step and can be selected."""
    graph, names = plan.graph, list[str]()
    for name in without_labels(path).split("."):
        names.append(name)
        node = graph.by_name[name]
        if not isinstance(node, Pipeline):
            break
        graph = node.graph
    return ".".join(names)


def _sources(spec: str, code: Path) -> Path:
    """Return the user's folder with the code of a step; its snapshot if it is not known.

    spec: the file of the component, or of the job
    """
    try:
        text = yaml.safe_load(Path(spec).read_text(encoding="utf-8")).get("code") or "."
    except (OSError, ValueError, AttributeError, yaml.YAMLError):
        return code
    folder = (Path(spec).parent / str(text)).resolve()
    return folder if folder.is_dir() else code


def _launch_json(step: str, ports: Mapping[str, int], sources: Path) -> str:
    """Return the configurations of VS Code that attach to the ranks."""
    configurations = [
        {
            "name": f"{step}, {name}",
            "type": "debugpy",
            "request": "attach",
            "connect": {"host": LOCAL, "port": port},
            "pathMappings": [{"localRoot": str(sources), "remoteRoot": "."}],
            "justMyCode": False,
            "subProcess": False,
        }
        for name, port in ports.items()
    ]
    launch: dict[str, object] = {"version": "0.2.0", "configurations": configurations}
    if len(configurations) > 1:
        launch["compounds"] = [{"name": step, "configurations": [each["name"] for each in configurations]}]
    return json.dumps(launch, indent=2)
