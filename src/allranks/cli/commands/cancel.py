"""`allranks cancel`: end a run, or steps of it."""

import sys
from typing import Annotated

from allranks.azure import runs, watch
from allranks.cli.completion import complete_steps
from allranks.cli.console import console, errors
from allranks.cli.options import FolderOption, RunArgument
from allranks.cli.parameters import argument, option
from allranks.errors import InputError, Problem, raise_any
from allranks.history import locks, stored
from allranks.history.nested import node_at, steps_of
from allranks.history.records import RunRecord, Status
from allranks.local.cancellation import cancel_nodes, cancel_run, wait_until
from allranks.workspace import Workspace


def cancel(
    identity: RunArgument,
    steps: Annotated[
        list[str] | None,
        argument(
            "STEP...",
            "Steps or groups of steps by their paths, such as train or loop.2.train; without them, the run.",
            autocompletion=complete_steps,
        ),
    ] = None,
    now: Annotated[bool, option("--now", "Kill the ranks at once. Without it they have time to end.")] = False,
    folder: FolderOption = None,
) -> None:
    """End a run, or steps of it, here or on Azure ML.

    Exit with 1 if it has not ended after a minute.
    """
    workspace = Workspace.at(folder)
    record = stored.run(workspace, identity)
    if record.submitted is not None:
        _cancel_in_azure(record, steps or [], now)
    elif steps:
        _cancel_steps(workspace, record, steps, now)
    else:
        _cancel_run(workspace, record, now)


def _cancel_run(workspace: Workspace, record: RunRecord, now: bool) -> None:
    _require_engine(workspace, record)
    ended = cancel_run(workspace, record.id, at_once=now)
    status = stored.run(workspace, record.id).status
    if not ended:
        _print_late(f"run {record.id} has not ended yet", f"allranks cancel {record.id} --now")
    advice = f"; resume it: allranks resume {record.id}" if status is not Status.COMPLETED else ""
    console().print(f"run {record.id} is {status}{advice}", soft_wrap=True)


def _cancel_steps(workspace: Workspace, record: RunRecord, steps: list[str], now: bool) -> None:
    _require_engine(workspace, record)
    nodes = [node_at(record, step) for step in steps]
    where, expected = f"run {record.id}, step", "a step that has not ended"
    raise_any(Problem(f"{where} {node.path}", f"it is {node.status}", expected) for node in nodes if node.status.ended)
    paths = [node.path for node in nodes]

    def no_step_is(*states: Status) -> bool:
        run = stored.run(workspace, record.id)
        return not any(step.status in states for path in paths for step in steps_of(node_at(run, path)))

    under_way = (Status.RUNNING, Status.PREPARING)
    if not (cancel_nodes(workspace, record, paths, at_once=now) and wait_until(lambda: no_step_is(*under_way))):
        _print_late("the steps have not ended yet", f"allranks cancel {record.id} {' '.join(steps)} --now")
    # A step that waits for a slot or reads its inputs ends immediately, one that waits for others when they end.
    wait_until(lambda: no_step_is(Status.NOT_STARTED), 1.0)
    run = stored.run(workspace, record.id)
    for path in paths:
        status = node_at(run, path).status
        text = "will not start" if status is Status.NOT_STARTED else f"is {status}"
        console().print(f"{path} {text}", soft_wrap=True)


def _require_engine(workspace: Workspace, record: RunRecord) -> None:
    """Raise InputError if no process executes the run."""
    if locks.holder(workspace.run_folder(record.id)) is None:
        fix = f"see: allranks show {record.id}"
        if record.status is Status.INTERRUPTED:
            fix = f"none of its processes is left; resume it: allranks resume {record.id}"
        raise InputError(Problem(f"run {record.id}", f"it is {record.status}", "a run that has not ended", fix))


def _print_late(found: str, fix: str) -> None:
    errors().print(f"error: {found}\n  try: {fix}", soft_wrap=True)
    sys.exit(1)


def _cancel_in_azure(record: RunRecord, steps: list[str], now: bool) -> None:
    where = f"run {record.id}"
    if steps or now:
        where = f"{where}, {f'step {steps[0]}' if steps else '--now'}"
        fix = f"cancel the whole run: allranks cancel {record.id}"
        raise InputError(Problem(where, "the run is on Azure ML", "a run on this machine", fix))
    with watch.connected(record) as client:
        if not record.status.ended:
            runs.update(client, record)
        if record.status.ended:
            raise InputError(Problem(where, f"it is {record.status}", "a run that has not ended"))
        runs.cancel(client, record.id)
    console().print(f"Azure ML is canceling {record.id}; see: allranks show {record.id}", soft_wrap=True)
