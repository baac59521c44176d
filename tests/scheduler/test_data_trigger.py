"""Schedules that fire when data changes: what a change is, and when they fire, with a clock that goes when it waits."""

import itertools
import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from allranks.errors import InputError, Problem
from allranks.local.data import storage
from allranks.local.data.storage import Remote, RemoteFile
from allranks.plan.graph import Graph, Plan
from allranks.plan.ports import Input, Literal, Value
from allranks.plan.ports import Path as Data
from allranks.scheduler.data_trigger import content_of
from allranks.scheduler.ledger import Entry, Firing
from allranks.schedules.policy import Policy
from allranks.schedules.triggers import Cron
from allranks.workspace import Workspace
from allranks_command import content
from scheduler_stage import Run, Stage, at

YEARLY = Cron("0 0 * * 1", start=datetime(2030, 1, 1))


class Arrivals(Stage):
    """Files arrive in a folder. fired: the time and the data of each firing, whose run may be resumed"""

    def __init__(self, folder: Path, numbers: random.Random) -> None:
        super().__init__(folder / "w", numbers.choice((0.001, 0.1)))
        self.folder, self.numbers, self.fired = folder / "data", numbers, dict[datetime, str]()
        self.folder.mkdir()
        (self.folder / "0").write_text("0")
        self.read()

    def read(self) -> None:
        plan = Plan("p", Graph((), (Input("images", "uri_folder", Data(str(self.folder))),)))
        self.data = content_of(plan, "images", "", self.place.workspace)

    def start(self, firing: Firing) -> Run:
        self.fired.setdefault(firing.at, self.data)
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
    assert [*world.fired.values()] == expected
    assert all(after - before >= timedelta(seconds=interval) for before, after in itertools.pairwise(world.fired))


@pytest.mark.parametrize("seed", range(5))
def test_it_fires_once_for_each_change(seed: int, tmp_path: Path) -> None:
    fires_once_for_each_change(tmp_path, seed)


@pytest.mark.recipe
@pytest.mark.parametrize("seed", range(5, 105))
def test_it_fires_once_for_each_change_in_a_hundred_sequences(seed: int, tmp_path: Path) -> None:
    fires_once_for_each_change(tmp_path, seed)


def plan_of(value: Value) -> Plan:
    return Plan("p", Graph((), (Input("images", "uri_folder", value), Input("seed", "integer", Literal(1)))))


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        (
            "image",
            "/",
            "image, which the pipeline does not have\n  expected: an input with data: images\n  fix: did you",
        ),
        ("seed", "/", "seed, which has no data"),
        ("images", "/no/folder", "images, /no/folder: it cannot be listed: No such file or directory"),
        ("images", "memory:/x", "it cannot be listed"),
    ],
)
def test_data_that_cannot_be_listed_is_refused(name: str, path: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        content_of(plan_of(Data(path)), name, "schedule a (a.py)", Workspace(tmp_path))
    assert str(caught.value).startswith("schedule a (a.py), key tags.allranks.on_change: ")
    assert said in str(caught.value)


def test_remote_data_changes_with_the_names_and_versions_that_the_service_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a": RemoteFile("a", 1, "1")}
    monkeypatch.setattr(storage, "find", lambda _, kind: Remote(None, kind == "uri_file", files))

    def digest() -> str:
        return content_of(plan_of(Data("https://host/images")), "images", "a", Workspace(tmp_path))

    first = digest()
    assert digest() == first
    files["a"] = RemoteFile("a", 1, "2")
    assert digest() != first
    files["b"] = RemoteFile("b", 1)
    with pytest.raises(InputError, match="neither versions nor times"):
        digest()


def test_data_that_cannot_be_read_for_a_while_is_reported_once(tmp_path: Path) -> None:
    world = Stage(tmp_path)
    world.keep(Policy("images"), a=YEARLY)
    found: list[str | InputError] = ["", *[InputError(Problem("a", "it is gone"))] * 3, "new", "new"]

    def look(_: Entry) -> str:
        each = found.pop(0) if len(found) > 1 else found[0]
        if isinstance(each, InputError):
            raise each
        return each

    world.look = look  # type: ignore[method-assign]
    assert len(world.go(1)) == 1
    assert [event.kind for event in world.said if event.kind in ("unreadable", "fired")] == ["unreadable", "fired"]
