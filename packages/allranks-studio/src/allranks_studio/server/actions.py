"""Start, cancel, resume and rerun runs, as the commands do: each in a process of its own, which outlives the studio."""

import json
import select
import subprocess
import sys
import tempfile
import threading
from typing import Any

from cattrs import structure

from allranks.errors import InputError, Problem
from allranks.history import locks, stored
from allranks.local.cancellation import cancel_run
from allranks_studio.server.answers import Call

PATIENCE = 600.0
"""Seconds in which a run must have begun. Its data may be downloaded first."""


def cancel(call: Call) -> dict[str, str]:
    """Answer POST /api/runs/cancel. The run ends when its ranks have: an event says so."""
    workspace = call.folder.workspace
    record = stored.run(workspace, call.text("run"), curves=False)
    if record.submitted is not None:
        fix = f"allranks cancel {record.id}"
        raise InputError(Problem(f"run {record.id}", "it is on Azure ML", "a run on this machine", fix))
    if record.status.ended or locks.holder(workspace.run_folder(record.id)) is None:
        raise InputError(Problem(f"run {record.id}", f"it is {record.status}", "a run that has not ended"))
    cancel_run(workspace, record.id, patience=0.0)
    return {"run": record.id}


def begin(call: Call) -> dict[str, str]:
    """Answer POST /api/runs/start, /resume and /rerun, when the run has begun. Raise InputError if it cannot begin."""
    folder, action = call.folder, call.text("action")
    if action == "start":
        target = str(folder.file(call.text("path")))
    else:
        target = stored.run(folder.workspace, call.text("run"), curves=False).id
    task = {"workspace": str(folder.workspace.root), "action": action, "target": target, "inputs": call.table("inputs")}
    with tempfile.TemporaryFile(prefix="allranks-") as errors:
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
        with process.stdin, process.stdout:
            process.stdin.write(json.dumps(task).encode() + b"\n")
            process.stdin.close()
            if not select.select([process.stdout], [], [], PATIENCE)[0]:
                process.terminate()
                raise InputError(Problem(str(folder.path), f"the run has not begun within {PATIENCE:g} s"))
            answer: dict[str, Any] = json.loads(process.stdout.read() or b"{}")
        if "problems" in answer:
            raise InputError(*structure(answer["problems"], list[Problem]))
        if "run" not in answer:
            errors.seek(0)
            last = "\n".join(errors.read().decode(errors="replace").splitlines()[-5:])
            raise InputError(Problem(str(folder.path), f"the process of the run has ended: {last}"))
    return {"run": answer["run"]}
