"""The events of a folder, as its engines write the store."""

from pathlib import Path

from serving import Client

from allranks.history import locks
from allranks.history.records import Point, Status
from allranks.history.store import Store
from run_records import BEGIN, make_ranks, make_run, make_step


def test_a_run_is_followed_from_its_start_to_its_end(studio: Client, root: Path) -> None:
    log = root / "runs/a/train/0.txt"
    log.parent.mkdir(parents=True)
    step = make_step("train", status=Status.NOT_STARTED, ended=None, ranks=make_ranks(1, 1))
    step.ranks[0].log, step.ranks[0].status = str(log), Status.NOT_STARTED
    run = make_run(step, id="a", status=Status.RUNNING, ended=None)
    with Store(root / "allranks.db") as store, locks.hold(root / "runs/a"), studio.events() as events:
        store.add_run(run, "{}")
        assert events.next(kind="run")["status"] == "Running"
        step.status = step.ranks[0].status = Status.RUNNING
        store.save_step(run, step)
        assert events.next(kind="step", status="Running")["step"] == "train"
        assert events.next(kind="rank", status="Running")["rank"] == 0
        log.write_text("first\n")
        assert events.next(kind="log")["size"] == 6
        place = events.last
        store.add_points("a", "train", [("loss", Point(x, x / 2, BEGIN)) for x in range(3)])
        points = events.next(kind="points")
        assert (points["run"], points["step"]) == ("a", "train")
        with studio.events(place) as again:
            assert again.next()["kind"] == "points"
        log.write_text("first\nlast\n")
        step.status = run.status = Status.COMPLETED
        store.save_step(run, step)
        store.save_run(run)
        assert events.next(kind="run", status="Completed")["run"] == "a"
        store.remove_run("a")
        assert events.next(kind="run")["status"] == "removed"
    with studio.events("earlier-1") as events:
        assert events.next() == {"kind": "reset"}


def test_an_engine_that_dies_is_noticed(studio: Client, root: Path) -> None:
    run = make_run(id="dying", status=Status.RUNNING, ended=None)
    with studio.events() as events:
        with Store(root / "allranks.db") as store, locks.hold(root / "runs/dying"):
            store.add_run(run, "{}")
            events.next(run="dying", status="Running")
        events.next(run="dying", status="Interrupted")
