"""A scheduler for test_scheduler_kill.py whose clock goes by itself: ``killed_scheduler.py WORKSPACE FIRED END``.

Time stands still while something runs, jumps to what is due next, and is kept in a file, so that the next scheduler
has it. At the end it stops by itself. After every step that it makes, it writes a byte to its standard output.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import bounded
from allranks.history.workspace import Workspace
from allranks.local.scheduler.ledger import Firing, Ledger, SchedulesPlace
from allranks.local.scheduler.running import carry_out
from allranks.local.scheduler.scheduler import MissedPolicy, Scheduler, SystemClock, Watcher


class JumpingClock(SystemClock):
    def __init__(self, scheduler: list[Scheduler], file: Path, end: datetime) -> None:
        super().__init__(lambda: scheduler[0].stop())
        self.scheduler, self.file, self.end = scheduler, file, end

    def now(self) -> datetime:
        os.write(1, b".")
        return datetime.fromtimestamp(float(self.file.read_text()), timezone.utc)

    def wait(self, until: datetime | None, *, glance: bool) -> None:
        os.write(1, b".")
        if self.scheduler[0]._children or glance:
            self.listen(30 if not glance else 0.01)
        elif until is None or until > self.end:
            self.scheduler[0].stop()
        else:
            # In one piece, whenever it is killed.
            written = self.file.with_suffix(".new")
            written.write_text(str(until.timestamp()))
            written.replace(self.file)


def schedule(root: Path, fired: str, end: float) -> None:
    place = SchedulesPlace(Workspace(root))

    def start(firing: Firing, descriptor: int) -> subprocess.Popen[bytes]:
        os.write(1, b".")
        words = [sys.executable, "-S", __file__, str(root), fired, firing.run]
        paths = os.pathsep.join(path for path in sys.path if path)
        child = bounded.Popen(
            words, pass_fds=(descriptor,), start_new_session=True, env={"PYTHONPATH": paths}, stdout=subprocess.DEVNULL
        )
        os.write(1, b".")
        return child

    with place.hold(), Ledger(place.ledger) as ledger:
        found: list[Scheduler] = []
        with JumpingClock(found, root / "time", datetime.fromtimestamp(end, timezone.utc)) as clock:
            found.append(Scheduler(ledger, place, clock, start, Watcher(), MissedPolicy.ALL))
            found[0].run()


def linger(root: Path) -> None:
    """Goes on for a moment; where the scheduler is killed in it, until the next one has had time to look at this run.

    Nothing depends on how long that is, but that a run may be found alive.
    """
    scheduler = os.getppid()
    for _ in range(20):
        time.sleep(0.005)
        if os.getppid() != scheduler:
            break
    else:
        return
    for _ in range(1000):
        time.sleep(0.005)
        with open(root / "scheduler.lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                break
    time.sleep(0.1)


def run(root: Path, fired: str, name: str) -> None:
    def execute(plan: str, firing: Firing) -> tuple[str, str]:
        file = os.open(fired, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{firing.run}\n".encode())
        os.close(file)
        linger(root)
        return "Completed", ""

    carry_out(SchedulesPlace(Workspace(root)), name, execute)


if __name__ == "__main__":
    _, folder, list_of_fired, last = sys.argv
    if last.replace(".", "").isdecimal():
        schedule(Path(folder), list_of_fired, float(last))
    else:
        run(Path(folder), list_of_fired, last)
