"""Start, cancel, resume and rerun runs, as the commands do: each in a process of its own, which outlives the studio."""

import threading

from allranks.api.engine_process import EngineError, launch
from allranks.errors import InputError, Problem
from allranks.history import locks, stored
from allranks.history.records import RunRecord
from allranks.local.cancellation import cancel_run
from allranks_studio.server.folders import Folder


def cancel(folder: Folder, record: RunRecord) -> dict[str, str]:
    """Answer POST /api/runs/cancel. The run ends when its ranks have: an event says so."""
    if record.submitted is not None:
        fix = f"allranks cancel {record.id}"
        raise InputError(Problem(f"run {record.id}", "it is on Azure ML", "a run on this machine", fix))
    if record.status.ended or locks.holder(folder.workspace.run_folder(record.id)) is None:
        raise InputError(Problem(f"run {record.id}", f"it is {record.status}", "a run that has not ended"))
    cancel_run(folder.workspace, record.id, patience=0.0)
    return {"run": record.id}


def begin(folder: Folder, action: str, inputs: dict[str, str], path: str = "", run: str = "") -> dict[str, str]:
    """Answer POST /api/runs/start, /resume and /rerun, when the run has begun. Raise InputError if it cannot begin."""
    is_new = action == "start"
    target = str(folder.file(path)) if is_new else stored.run(folder.workspace, run, curves=False).id
    task = {"workspace": str(folder.workspace.root), "action": action, "target": target, "inputs": inputs}
    try:
        begun, engine = launch(["-P", "-m", "allranks_studio.server.run_process"], task, folder.path)
    except EngineError as error:
        raise InputError(Problem(str(folder.path), str(error))) from None
    threading.Thread(target=engine.wait, daemon=True).start()
    return {"run": begun}
