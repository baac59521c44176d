"""The process of one firing's run: ``python -m allranks.scheduler.running WORKSPACE RUN OPTIONS LOCK SCHEDULER``.

It stops when its scheduler ends, and has inherited the scheduler's lock, which keeps another one from starting before.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks.history import locks, secret_values, stored
from allranks.history.records import RunRecord, Status
from allranks.local import requirements
from allranks.local.engine import DiskFullError, resume, run
from allranks.local.instances import kernel
from allranks.local.options import Options
from allranks.plan import codec
from allranks.plan.secrets import restored
from allranks.scheduler.ledger import Firing, Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.workspace import Workspace

CANCELED = 130
"""Exit code of a run that was canceled. The scheduler decides whether to resume it."""


def start(paths: SchedulerPaths, options: dict[str, Any], lock: int, firing: Firing) -> subprocess.Popen[bytes]:
    """Start the process in its own session, so that Ctrl-C reaches the scheduler only. lock: a descriptor"""
    command = [sys.executable, "-m", "allranks.scheduler.running", str(paths.workspace.root), firing.run]
    with open(paths.log(firing.run), "ab") as log:
        return subprocess.Popen(
            [*command, json.dumps(options), str(lock), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock,),
            start_new_session=True,
        )


def carry_out(paths: SchedulerPaths, run: str, options: dict[str, Any]) -> int:
    """Run a firing's plan, record the result in the ledger unless it is canceled, and return the exit code."""
    with Ledger(paths.ledger) as ledger:
        firing = ledger.firing(run)
        plan = ledger.plan(firing.schedule)
    try:
        plan = restored(plan, secret_values.load(paths.secrets(firing.schedule)))
        record = run_engine(paths.workspace, options, plan, firing)
        status, verdict = record.status, record.verdict
        reason = f"{verdict.step}: {verdict.reason}" if verdict else ""
    except (InputError, DiskFullError) as error:
        print(error, file=sys.stderr)
        status, reason = Status.FAILED, str(error).splitlines()[0]
    except KeyboardInterrupt:
        status, reason = Status.CANCELED, ""
    if status is Status.CANCELED:
        return CANCELED
    with Ledger(paths.ledger) as ledger:
        ledger.end(run, str(status), reason)
    return 0


def run_engine(workspace: Workspace, options: dict[str, Any], plan: str, firing: Firing) -> RunRecord:
    """Run the plan with the engine, or resume this run."""
    engine_options = Options(**options, trigger_time=firing.at, run_name=firing.run)
    existing = SchedulerPaths(workspace).record(firing.run)
    if existing is None:
        loaded = codec.loads(plan)
        requirements.require(loaded)
        return run(loaded, workspace, engine_options)
    locks.wait(workspace.run_folder(existing.id))
    record = stored.run(workspace, existing.id)
    is_earlier = firing.due is not None and (record.ended or 0) < firing.due.timestamp()
    if record.status is Status.COMPLETED or (record.status is Status.FAILED and not is_earlier):
        # The process was killed before it recorded the result in the ledger.
        return record
    return resume(existing.id, workspace, engine_options)


def main() -> None:
    root, run, options, lock, scheduler = sys.argv[1:]
    # Processes that this one starts may outlive it, and must not inherit the lock.
    os.set_inheritable(int(lock), False)
    kernel.die_with_parent(signal.SIGTERM)
    if os.getppid() == int(scheduler):
        sys.exit(carry_out(SchedulerPaths(Workspace(Path(root))), run, json.loads(options)))


if __name__ == "__main__":
    main()
