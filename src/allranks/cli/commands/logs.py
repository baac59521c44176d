"""`allranks logs`: print the logs of the ranks of a run, or of the engine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from allranks import engine_log
from allranks.cli.console import console, to_json
from allranks.cli.options import FolderOption, JsonOption, RunArgument, StepArgument, option
from allranks.errors import InputError, Problem
from allranks.history.nested import node_at

if TYPE_CHECKING:
    from allranks.history.log_reader import Find


def logs(
    identity: RunArgument = "latest",
    step: StepArgument = None,
    rank: Annotated[int | None, option("--rank", "Number of a rank. Default: all ranks.", min=0)] = None,
    engine: Annotated[bool, option("--engine", "Print what the engine did, instead of the ranks.")] = False,
    follow: Annotated[bool, option("--follow -f", "Keep printing new lines until the run ends.")] = False,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Print the logs of the ranks of a run, or of the engine.

    If there are several logs, each line begins with its step and rank. For a run that was submitted to Azure ML, new
    lines are downloaded first. --json prints an array with one object per rank: step, rank, log (the path of the file),
    and lines.

    --engine prints what the engine and its processes did: the seconds since the first line, the process, the node, the
    event and its data; with --json an array with one object per event. Run with ALLRANKS_LOG=debug for more of them.
    """
    from allranks.azure.watch import finder
    from allranks.history.log_reader import follow_logs, print_logs, print_logs_json

    find = finder(workspace)
    if engine:
        _print_engine_log(find, identity, step, rank, follow, json)
    elif json:
        print_logs_json(find, identity, step, rank)
    elif follow:
        follow_logs(find, identity, step, rank)
    else:
        print_logs(find, identity, step, rank)


def _print_engine_log(find: Find, identity: str, step: str | None, rank: int | None, follow: bool, json: bool) -> None:
    from allranks.cli.views.engine_log import LOOK, entries, print_entries

    if rank is not None:
        raise InputError(Problem(f"--rank {rank}", "it is given together with --engine", "one of them", "remove one"))
    run = find(identity)
    path = None if step is None else node_at(run, step).path
    file = Path(run.folder) / engine_log.FILE
    if run.submitted is not None or not file.is_file():
        found = "it ran on Azure ML" if run.submitted else "it has no log of the engine"
        raise InputError(Problem(f"run {run.id}", found, "a run on this machine, by this version of allranks"))

    def wait() -> bool:
        if not follow or find(run.id).status.ended:
            return False
        time.sleep(LOOK)
        return True

    log = (
        entry
        for entry in entries(file, wait)
        if path is None or f"{entry.get('node', '')}.".startswith((f"{path}.", f"{path}["))
    )
    if json:
        print(to_json(list(log)))
    else:
        print_entries(console(), log)
