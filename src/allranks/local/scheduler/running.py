"""The process of one firing's run: ``python -m allranks.local.scheduler.running WORKSPACE RUN OPTIONS``.

It inherits its locked log as standard output and standard error. The lock shows schedulers that it is running.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks.history import locks, secret_values, stored
from allranks.history.records import RunRecord, Status
from allranks.history.workspace import Workspace
from allranks.local.scheduler.ledger import Firing, Ledger, SchedulesPlace
from allranks.plan.codec import converter
from allranks.plan.graph import Plan
from allranks.plan.secrets import restored


def start(place: SchedulesPlace, options: dict[str, Any], firing: Firing, descriptor: int) -> subprocess.Popen[bytes]:
    """Start the process in its own session, so that neither Ctrl-C nor the end of the scheduler ends it."""
    module = "allranks.local.scheduler.running"
    command = [sys.executable, "-m", module, str(place.workspace.root), firing.run]
    return subprocess.Popen(
        [*command, json.dumps(options), str(descriptor)],
        stdin=subprocess.DEVNULL,
        stdout=descriptor,
        stderr=descriptor,
        pass_fds=(descriptor,),
        start_new_session=True,
    )


def carry_out(place: SchedulesPlace, run: str, options: dict[str, Any]) -> None:
    """Run a firing's plan, unless its run has already ended, and record the result in the ledger."""
    from allranks.local.engine import DiskFullError

    with Ledger(place.ledger) as ledger:
        firing = ledger.begin(run, os.getpid())
        plan = ledger.plan(firing.schedule) if firing else ""
    if firing is None:
        return
    try:
        plan = restored(plan, secret_values.load(place.secrets(firing.schedule)))
        record = run_engine(place.workspace, options, plan, firing)
        status, verdict = str(record.status), record.verdict
        reason = f"{verdict.step}: {verdict.reason}" if verdict else ""
    except (InputError, DiskFullError) as error:
        print(error, file=sys.stderr)
        status, reason = "Failed", str(error).splitlines()[0]
    with Ledger(place.ledger) as ledger:
        ledger.end(run, status, reason)


def run_engine(workspace: Workspace, options: dict[str, Any], plan: str, firing: Firing) -> RunRecord:
    """Run the plan with the engine, or resume this run."""
    from allranks.local import requirements
    from allranks.local.engine import resume, run
    from allranks.local.options import Options

    engine_options = Options(**options, trigger_time=firing.at, run_name=firing.run)
    existing = [record for record in stored.runs(workspace, steps=False) if record.job_name == firing.run]
    if not existing:
        loaded = converter().loads(plan, Plan)
        requirements.require(loaded, track=engine_options.track)
        return run(loaded, workspace, engine_options)
    locks.wait(workspace.run_folder(existing[0].id))
    if stored.run(workspace, existing[0].id).status in (Status.COMPLETED, Status.FAILED):
        # The process was killed before it recorded the result in the ledger.
        return stored.run(workspace, existing[0].id)
    return resume(existing[0].id, workspace, engine_options)


def main() -> None:
    root, run, options, descriptor = sys.argv[1:]
    # Processes that this one starts may outlive it, and must not inherit the lock.
    os.set_inheritable(int(descriptor), False)
    _silence_standard_streams(int(descriptor))
    place = SchedulesPlace(Workspace(Path(root)))
    with contextlib.suppress(KeyboardInterrupt):
        carry_out(place, run, json.loads(options))


def _silence_standard_streams(descriptor: int) -> None:
    """Open the log again for the output of this process, so that a process that inherits the streams does not inherit
    the lock."""
    log = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


if __name__ == "__main__":
    main()
