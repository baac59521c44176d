"""A scheduler that is killed at any moment loses nothing and doubles nothing: with real processes and a clock that
jumps."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import bounded
from allranks.history.workspace import Workspace
from allranks.local.scheduler.ledger import ENDED, Ledger, SchedulesPlace, run_name
from allranks.schedules.finding import Schedule
from allranks.schedules.firings import firings
from allranks.schedules.triggers import Recurrence

pytestmark = pytest.mark.slow

KILLS = 8
PROGRAM = Path(__file__).with_name("killed_scheduler.py")
BEGIN = datetime(2026, 3, 24, tzinfo=timezone.utc)
END = BEGIN + timedelta(days=8)
TRIGGERS = {
    # Over a change of clocks.
    "twice-a-day": Recurrence("day", 1, (2, 14), (30,), (), (), "W. Europe Standard Time", datetime(2026, 3, 24)),
    "often": Recurrence("hour", 11, start=datetime(2026, 3, 24)),
}


def launch(place: SchedulesPlace, fired: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-S", str(PROGRAM), str(place.workspace.root), str(fired), str(END.timestamp())]
    paths = os.pathsep.join(path for path in sys.path if path)
    return bounded.Popen(words, stdout=subprocess.PIPE, env={"PYTHONPATH": paths}, start_new_session=True)


def steps(process: subprocess.Popen[bytes], amount: int) -> bool:
    """Waits until the scheduler has made so many steps. False where it came to its end before."""
    assert process.stdout is not None
    return all(process.stdout.read(1) for _ in range(amount))


def test_a_killed_scheduler_loses_and_doubles_nothing(tmp_path: Path) -> None:
    place = SchedulesPlace(Workspace(tmp_path / "w"))
    place.make()
    fired = tmp_path / "fired"
    (place.workspace.root / "time").write_text(str(BEGIN.timestamp()))
    with Ledger(place.ledger) as ledger:
        ledger.replace([(Schedule(name, name, "", trigger, ""), "{}") for name, trigger in TRIGGERS.items()], BEGIN)

    dice = random.Random()
    kills = 0
    while kills < KILLS:
        with launch(place, fired) as process:
            # Somewhere within its first firings, then a bit further.
            if steps(process, dice.randrange(1, 16)):
                for _ in range(dice.randrange(20_000)):
                    pass
            process.kill()
        kills += 1
    with launch(place, fired) as process:
        process.communicate(timeout=240)
    assert process.returncode == 0

    expected = []
    for name, trigger in TRIGGERS.items():
        for moment in firings(trigger, BEGIN - timedelta(microseconds=1), BEGIN):
            if moment > END:
                break
            expected.append(run_name(name, moment))
    assert sorted(fired.read_text().splitlines()) == sorted(expected)
    with Ledger(place.ledger) as ledger:
        assert {firing.state for name in TRIGGERS for firing in ledger.firings(name)} == {ENDED}
