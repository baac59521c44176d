"""The scheduler's decisions, with a clock that only goes when it waits and runs that end when a test says so."""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.scheduler.ledger import CREATED, Firing, Ledger
from allranks.scheduler.running import CANCELED
from allranks.scheduler.scheduler import Scheduler
from allranks.schedules.finding import Schedule
from allranks.schedules.policy import Policy
from allranks.schedules.triggers import Cron, Recurrence
from scheduler_stage import HOURLY, Run, Stage, at


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Stage]:
    return lambda length=0.1: Stage(tmp_path / "w", length)


def test_what_is_due_is_run_once(stage: Callable[..., Stage]) -> None:
    world = stage()
    world.keep(a=HOURLY, b=Recurrence("hour", 2, start=at(1).replace(tzinfo=None)))
    assert world.go(3.5) == ["a@1", "b@1", "a@2", "a@3", "b@3"]
    with Ledger(world.place.ledger) as ledger:
        runs = ("b-20260101T010000Z", "b-20260101T030000Z")
        assert [ledger.firing(run).status for run in runs] == ["Completed", "Completed"]


def test_schedules_of_a_client_stay_when_files_are_read_and_are_seen_while_it_runs(
    stage: Callable[..., Stage],
) -> None:
    world = stage()
    created = Schedule("b", "b", "", Cron("15 * * * *"), CREATED)

    def put(enabled: bool) -> None:
        with Ledger(world.place.ledger) as ledger:
            ledger.put(created, "{}", "", world.time, enabled=enabled)

    world.keep(a=HOURLY)
    start = world.start

    def start_and_put(firing: Firing) -> Run:
        world.start = start  # type: ignore[method-assign]
        put(enabled=True)
        return start(firing)

    world.start = start_and_put  # type: ignore[method-assign]
    assert world.go(2.5) == ["a@1", "b@1.25", "a@2", "b@2.25"]
    world.keep(a=HOURLY)
    assert world.go(3.5) == ["a@3", "b@3.25"]
    assert world.place.created() == [created]
    put(enabled=False)
    assert world.go(4.5) == ["a@4"]
    assert world.place.created() == []
    put(enabled=True)
    assert world.go(5.5) == ["a@5", "b@5.25"]  # what it did not do while it was disabled is not made up for


def test_a_disabled_schedule_stays_disabled_when_files_are_read(stage: Callable[..., Stage]) -> None:
    world = stage()

    def switch(on: bool) -> None:
        with Ledger(world.place.ledger) as ledger:
            ledger.switch("a", world.time, on=on)

    world.keep(a=HOURLY, b=HOURLY)
    switch(on=False)
    assert world.go(1.5) == ["b@1"]
    world.keep(b=HOURLY)
    world.keep(a=HOURLY, b=HOURLY)
    assert world.go(2.5) == ["b@2"]
    assert {name: entry.enabled for name, entry in world.place.entries().items()} == {"a": False, "b": True}
    switch(on=True)
    assert world.go(3.5) == ["a@3", "b@3"]  # what it missed is not run later
    last = world.place.entries()["b"].last
    assert (last and last.run, last and last.status) == ("b-20260101T030000Z", "Completed")


def test_a_scheduler_runs_the_named_schedules(stage: Callable[..., Stage]) -> None:
    world = stage()
    world.keep(a=HOURLY, b=HOURLY)
    assert world.go(1.5, "b") == ["b@1"]
    assert world.said[-1].kind == "stopped"


def test_a_firing_that_is_added_runs_at_once_and_moves_no_other(stage: Callable[..., Stage]) -> None:
    world = stage()
    world.keep(a=HOURLY)
    wait = world.wait

    def add(until: datetime | None) -> None:
        world.wait = wait  # type: ignore[method-assign]
        with Ledger(world.place.ledger) as ledger:
            ledger.add("a", at(0.25))
        world.time = at(0.25)

    world.wait = add  # type: ignore[method-assign]
    assert world.go(1.5) == ["a@0.25", "a@1"]
    with Ledger(world.place.ledger) as ledger:
        firing = ledger.add("a", at(0.75))
        assert firing is not None
        world.until = at(9)
        Scheduler(ledger, world.start, world.said.append, world).run_once(firing)
    assert [event.kind for event in world.said[-2:]] == ["fired", "ended"]


def test_a_recurrence_without_a_start_fires_at_once(stage: Callable[..., Stage]) -> None:
    world = stage()
    world.time += timedelta(milliseconds=1)
    world.keep(a=Recurrence("hour", 1))
    assert [run.partition("+")[0] for run in world.go(1.5)] == ["a@0", "a@1"]


def test_of_what_was_due_while_no_scheduler_ran_the_last_is_run(stage: Callable[..., Stage]) -> None:
    world = stage()
    world.keep(a=HOURLY)
    assert world.go(1.5) == ["a@1"]
    world.time = at(5.5)
    assert world.go(6.5) == ["a@5+5.5", "a@6"]
    (missed,) = [event for event in world.said if event.kind == "missed"]
    assert {**missed.values}.items() >= {"first": at(2), "last": at(4), "count": 3}.items()


def test_what_is_due_while_the_run_before_goes_on_waits_for_it(stage: Callable[..., Stage]) -> None:
    world = stage(2.5)
    world.keep(a=HOURLY)
    assert world.go(6.25) == ["a@1", "a@3+3.5", "a@6"]
    assert [event.values["last"] for event in world.said if event.kind == "missed"] == [at(2), at(5)]


def test_runs_are_stopped_with_the_scheduler_and_go_on_with_the_next(stage: Callable[..., Stage]) -> None:
    world = stage(5)
    world.keep(a=Cron("0 1 * * *"))
    world.go(2)
    assert [run.code for run in world.runs] == [CANCELED]
    run = world.runs[0].firing.run
    world.length = timedelta(hours=1)
    assert world.go(4) == ["a@1+2"]
    with Ledger(world.place.ledger) as ledger:
        assert ledger.firing(run).status == "Completed"


def test_a_run_whose_scheduler_was_killed_is_resumed(stage: Callable[..., Stage]) -> None:
    world = stage()
    world.keep(a=HOURLY)
    with Ledger(world.place.ledger) as ledger:
        ledger.claim("a", at(1))
    world.time = at(1.25)
    assert world.go(2.5) == ["a@1+1.25", "a@2"]
    assert [event.kind for event in world.said if "run" in event.values] == ["resumed", "ended", "fired", "ended"]


@pytest.mark.parametrize(
    ("code", "status", "reason"), [(-9, "Interrupted", "SIGKILL"), (1, "Interrupted", "code 1"), (130, "Canceled", "")]
)
def test_a_run_that_does_not_record_its_end(code: int, status: str, reason: str, stage: Callable[..., Stage]) -> None:
    world = stage(100)
    world.keep(a=Cron("0 1 * * *"))
    wait = world.wait

    def kill(until: datetime | None) -> None:
        for run in world.runs:
            if run.code is None:
                world.end(run, "", code)
        wait(until)

    world.wait = kill  # type: ignore[method-assign]
    assert world.go(3) == ["a@1"]
    with Ledger(world.place.ledger) as ledger:
        firing = ledger.firing(world.runs[0].firing.run)
    assert (firing.status, reason in firing.reason) == (status, True)


def test_a_schedule_that_did_not_change_goes_on_where_it_was(stage: Callable[..., Stage]) -> None:
    world = stage()
    world.keep(a=HOURLY, b=HOURLY, c=HOURLY)
    world.go(1.5)
    world.time = at(3.75)
    world.keep(a=HOURLY, b=Cron("30 * * * *"))
    assert world.go(4.75) == ["a@3+3.75", "a@4", "b@4.5"]


def test_a_failed_firing_is_retried_and_judged_once(stage: Callable[..., Stage]) -> None:
    """Its retries come 6 and 12 minutes after its end. The schedule's next firing waits for them."""
    world = stage(0.5)
    world.keep(Policy(retries=2, retry_after=360), a=HOURLY)
    world.outcomes = ["Failed", "Interrupted", "Failed"]
    assert world.go(2.55) == ["a@1", "a@1+1.6", "a@1+2.3"]
    world.time = at(2.7)
    assert world.go(3.9) == ["a@1+2.7", "a@3+3.2"]  # resumed; the firing at 2 is missed
    with Ledger(world.place.ledger) as ledger:
        last, first = ledger.firings("a")
        assert [(each.status, each.retries, each.events) for each in (last, first)] == [
            ("Completed", 0, "Completed-after-Failed-after-nothing"), ("Failed", 2, "Failed-after-nothing"),
        ]  # fmt: skip
        assert [*ledger.notices()] == [
            f"{first.run}:Failed-after-nothing", "a-20260101T020000Z:missed", f"{last.run}:{last.events}",
        ]  # fmt: skip
    assert [event.kind for event in world.said if event.kind.startswith("retr")] == ["retries", "retried"] * 2


def test_a_firing_is_claimed_once(stage: Callable[..., Stage]) -> None:
    world = stage()
    world.keep(a=HOURLY)
    with Ledger(world.place.ledger) as one, Ledger(world.place.ledger) as two:
        assert one.claim("a", at(1)) is not None
        assert two.claim("a", at(1)) is None


def test_one_scheduler_a_workspace(stage: Callable[..., Stage]) -> None:
    place = stage().place
    with place.hold(), pytest.raises(InputError, match=f"process {os.getpid()}"), place.hold():
        pass


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schedules.db").write_text("something else entirely, and long enough to be looked at" * 20)
    with pytest.raises(InputError, match="not a ledger of schedules"):
        Ledger(tmp_path / "schedules.db")
