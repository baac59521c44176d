"""Schedules that fire when data changes: what a change is, and when they fire, with a clock that goes when it waits."""

import itertools
import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from allranks.plan.graph import Graph, Plan
from allranks.plan.ports import Input
from allranks.plan.ports import Path as Data
from allranks.scheduler.data_trigger import content_of
from allranks.scheduler.ledger import Firing
from allranks.schedules.policy import Policy
from allranks.schedules.triggers import Cron
from allranks_command import content
from scheduler_stage import Run, Stage, at

YEARLY = Cron("0 0 * * 1", start=datetime(2030, 1, 1))


class Arrivals(Stage):
    """Files arrive in a folder. fired: the data at each firing"""

    def __init__(self, folder: Path, numbers: random.Random) -> None:
        super().__init__(folder / "w", numbers.choice((0.001, 0.1)))
        self.folder, self.numbers, self.fired = folder / "data", numbers, list[str]()
        self.folder.mkdir()
        (self.folder / "0").write_text("0")
        self.read()

    def read(self) -> None:
        plan = Plan("p", Graph((), (Input("images", "uri_folder", Data(str(self.folder))),)))
        self.data = content_of(plan, "images", "", self.place.workspace)

    def start(self, firing: Firing) -> Run:
        self.fired.append(self.data)
        return super().start(firing)

    def change(self) -> None:
        """Add, remove, rename, replace or touch a file."""
        kind = self.numbers.choice(("add", "remove", "rename", "replace", "touch"))
        name, files = f"{self.numbers.getrandbits(64)}", sorted(self.folder.iterdir())
        file = self.folder / name if kind == "add" or not files else self.numbers.choice(files)
        if kind == "remove":
            file.unlink(missing_ok=True)
        elif kind == "rename" and files:
            file.rename(self.folder / name)
        else:
            file.write_text(file.read_text() if kind == "touch" and files else name)
        self.read()


def fires_once_for_each_change(folder: Path, seed: int) -> None:
    """Meanwhile, the scheduler runs, is started again, or is off."""
    numbers = random.Random(seed)
    world, interval = Arrivals(folder, numbers), numbers.choice((20, 60, 3600))
    world.keep(Policy("images", interval), a=YEARLY)
    expected: list[str] = []
    files = content(world.folder)
    for number in range(1, numbers.randint(2, 12)):
        for _ in range(numbers.choice((1, 1, 2))):  # the second one comes before anybody looks
            world.change()
        expected += [world.data] if content(world.folder) != files else []
        files, hours = content(world.folder), number * 1.5
        if numbers.random() < 0.3 and interval < 3600:
            world.time = at(hours - 0.3)
        if numbers.random() < 0.3:
            world.go(hours - 0.25)
        world.go(hours)
    assert world.fired == expected
    starts = [run.begun for run in world.runs]
    assert all(after - before >= timedelta(seconds=interval) for before, after in itertools.pairwise(starts))


@pytest.mark.parametrize("seed", range(5))
def test_it_fires_once_for_each_change(seed: int, tmp_path: Path) -> None:
    fires_once_for_each_change(tmp_path, seed)


@pytest.mark.recipe
@pytest.mark.parametrize("seed", range(5, 105))
def test_it_fires_once_for_each_change_in_a_hundred_sequences(seed: int, tmp_path: Path) -> None:
    fires_once_for_each_change(tmp_path, seed)
