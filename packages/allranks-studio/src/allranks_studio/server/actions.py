"""Start, cancel, resume and rerun runs, as the commands do: each in a process of its own, which outlives the studio."""

import json
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

from cattrs import structure

from allranks.errors import InputError, Problem
from allranks.history import locks, stored
from allranks.local.cancellation import cancel_run
from allranks_studio.server.answers import Call
from allranks_studio.server.folders import Folder

PATIENCE = 600.0
"""Seconds in which a run must have begun. Its data may be downloaded first."""


def start(call: Call) -> dict[str, str]:
    """Answer POST /api/runs/start."""
    file = call.folder.file(call.text("path"))
    if not file.is_file():
        raise InputError(Problem(call.text("path"), "there is no such file", "a pipeline of the folder"))
    return _begin(call.folder, "start", file=str(file), inputs=call.table("inputs"))


def resume(call: Call) -> dict[str, str]:
    """Answer POST /api/runs/resume."""
    return _begin(call.folder, "resume", run=_run(call), inputs={})


def rerun(call: Call) -> dict[str, str]:
    """Answer POST /api/runs/rerun."""
    return _begin(call.folder, "rerun", run=_run(call), inputs=call.table("inputs"))


def cancel(call: Call) -> dict[str, str]:
    """Answer POST /api/runs/cancel. The run ends when its ranks have: an event says so."""
    workspace, run = call.folder.workspace, _run(call)
    record = stored.run(workspace, run, curves=False)
    if record.submitted is not None:
        fix = f"allranks cancel {run}"
        raise InputError(Problem(f"run {run}", "it is on Azure ML", "a run on this machine", fix))
    if record.status.ended or locks.holder(workspace.run_folder(run)) is None:
        raise InputError(Problem(f"run {run}", f"it is {record.status}", "a run that has not ended"))
    cancel_run(workspace, run, patience=0.0)
    return {"run": run}


def _run(call: Call) -> str:
    """Return the id of a run. Raise InputError if there is none."""
    return stored.run(call.folder.workspace, call.text("run"), curves=False).id


def _begin(folder: Folder, action: str, **task: Any) -> dict[str, str]:
    """Start the process of a run, and return the run's id when it has begun. Raise InputError if it cannot begin."""
    errors = tempfile.TemporaryFile(prefix="allranks-")  # noqa: SIM115  # the process writes into it after this
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "allranks_studio.server.run_process"],
        cwd=folder.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,  # Ctrl-C ends the studio, not its runs
    )
    threading.Thread(target=process.wait, daemon=True).start()
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout, errors:
        line = json.dumps({"action": action, "workspace": str(folder.workspace.root), **task}) + "\n"
        process.stdin.write(line.encode())
        process.stdin.close()
        if not select.select([process.stdout], [], [], PATIENCE)[0]:
            process.terminate()
            raise InputError(Problem(str(folder.path), f"the run has not begun within {PATIENCE:g} s"))
        answer: Mapping[str, Any] = json.loads(process.stdout.read() or b"{}")
        if "problems" in answer:
            raise InputError(*structure(answer["problems"], list[Problem]))
        if "run" not in answer:
            errors.seek(0)
            last = "\n".join(errors.read().decode(errors="replace").splitlines()[-5:])
            raise InputError(Problem(str(folder.path), f"the process of the run has ended: {last}"))
    return {"run": answer["run"]}
