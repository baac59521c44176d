"""The page of a run while the run goes on."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from allranks.history import workspace
from allranks.history.page import live_page
from allranks.history.page.live_page import LivePage
from allranks.history.records import RunRecord, Status, StepRecord
from run_records import make_curve, make_run, make_step
from shown_page import Page

PATIENCE = 30


def make_running(folder: Path, *steps: StepRecord) -> RunRecord:
    return make_run(*steps, folder=str(folder), id=folder.name, status=Status.RUNNING, ended=None)


def running_step(name: str) -> StepRecord:
    return make_step(name, status=Status.RUNNING, ended=None)


async def until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(poll(), PATIENCE)


def loaded(folder: Path) -> dict[str, str]:
    """What an open page is given."""
    script = (folder / "run.live.js").read_text("utf-8")
    values: dict[str, str] = json.loads(script[script.index("(") + 1 : script.rindex(")")])
    return values


def test_the_page_exists_from_the_start_and_follows_the_run_to_its_end(tmp_path: Path) -> None:
    run = make_running(tmp_path / "calm_otter", running_step("train"))

    async def execute() -> None:
        page = LivePage(tmp_path / "calm_otter", interval=0.01)
        page.started(run)
        assert "is starting" in Page(page.path.read_text("utf-8")).text
        await until(lambda: "step-train" in loaded(tmp_path / "calm_otter")["main"])
        run.steps[0].metrics["loss"] = make_curve(1.0, 0.125)
        page.progressed(run, run.steps[0])
        await until(lambda: "0.125" in loaded(tmp_path / "calm_otter")["main"])
        await until(lambda: "0.125" in page.path.read_text("utf-8"))
        run.add(make_step("evaluate"))
        page.changed(run, run.steps[1])
        await until(lambda: "step-evaluate" in page.path.read_text("utf-8"))
        assert "run.live.js" in page.path.read_text("utf-8")
        run.status = run.steps[0].status = Status.COMPLETED
        page.finish(run)

    asyncio.run(execute())
    html = (tmp_path / "calm_otter/run.html").read_text("utf-8")
    assert [path.name for path in (tmp_path / "calm_otter").iterdir()] == ["run.html"]
    assert "✓ Completed" in Page(html).text
    assert "run.live.js" not in html
    assert "strict-dynamic" not in html


def test_a_new_line_of_a_log_updates_the_page(tmp_path: Path) -> None:
    from allranks.history.records import RankRecord

    log = tmp_path / "calm_otter/train/log.txt"
    log.parent.mkdir(parents=True)
    log.touch()
    step = running_step("train")
    step.ranks = [RankRecord(0, 0, 0, "host", Status.RUNNING, step.started, log=str(log))]
    run = make_running(tmp_path / "calm_otter", step)

    async def execute() -> None:
        page = LivePage(tmp_path / "calm_otter", interval=0.01, alive=1000)
        page.started(run)
        await until(lambda: "step-train" in page.path.read_text("utf-8"))
        for text in ("first", "second"):
            with log.open("a") as file:
                file.write(f"the {text} line\n")
            await until(lambda text=text: f"the {text} line" in page.path.read_text("utf-8"))  # type: ignore[misc]
        page.finish(run)

    asyncio.run(execute())


def test_nothing_is_rendered_while_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = 0
    rendered = 0

    def count_checks(logs: object) -> bool:
        nonlocal checks
        checks += 1
        return False

    def count_rendered(*_: object) -> str:
        nonlocal rendered
        rendered += 1
        return ""

    monkeypatch.setattr(live_page.LogExcerpts, "changed", count_checks)
    monkeypatch.setattr(live_page, "main", count_rendered)

    async def execute() -> None:
        page = LivePage(tmp_path, interval=0.001, alive=1000)
        page.started(make_running(tmp_path, running_step("train")))
        await until(lambda: checks > 5)
        page.finish(make_run())

    asyncio.run(execute())
    assert rendered == 1


def test_a_run_that_changes_nothing_is_still_seen_to_be_alive(tmp_path: Path) -> None:
    async def execute() -> None:
        page = LivePage(tmp_path, interval=0.001, alive=0.002)
        page.started(make_running(tmp_path))
        first = loaded(tmp_path)["written"]
        await until(lambda: loaded(tmp_path)["written"] > first)
        second = loaded(tmp_path)["written"]
        await until(lambda: loaded(tmp_path)["written"] > second)
        page.finish(make_run())

    asyncio.run(execute())


def test_the_next_update_waits_twenty_times_as_long_as_the_last_one_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    pauses: list[float] = []

    def slow(*_: object) -> str:
        nonlocal now
        now += 3.0
        return ""

    async def rest(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise asyncio.CancelledError

    monkeypatch.setattr(live_page, "main", slow)
    # Only the page's clock: the event loop needs one that advances.
    monkeypatch.setattr(live_page, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    monkeypatch.setattr(live_page, "_sleep", rest)

    async def execute() -> None:
        page = LivePage(tmp_path)
        page.started(make_running(tmp_path, running_step("train")))
        await until(lambda: len(pauses) == 2)
        page.finish(make_run())

    asyncio.run(execute())
    assert pauses[1] == pytest.approx(60)


def test_updates_that_fail_do_not_end_the_run_and_the_next_ones_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = workspace.write_file
    failures = [OSError(28, "no space left on device"), ValueError("bad"), OSError(28, "no space left on device")]

    def write_later(path: Path, text: str) -> None:
        if failures:
            raise failures.pop()
        write(path, text)

    monkeypatch.setattr(workspace, "write_file", write_later)
    run = make_running(tmp_path, running_step("train"))

    async def execute() -> None:
        page = LivePage(tmp_path, interval=0.001, alive=0.001)
        page.started(run)
        await until(lambda: (tmp_path / "run.html").exists())
        page.finish(run)

    asyncio.run(execute())
    assert not failures
    assert not (tmp_path / "run.live.js").exists()


def test_the_last_page_of_a_full_disk_is_an_error_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str, path: Path) -> None:
        raise OSError(28, "no space left on device")

    async def execute() -> None:
        page = LivePage(tmp_path)
        page.started(make_running(tmp_path))
        monkeypatch.setattr("allranks.history.page.page.write_file", fail)
        with pytest.raises(OSError, match="no space"):
            page.finish(make_run())

    asyncio.run(execute())


def test_an_update_that_is_late_does_not_replace_the_last_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendering, go_on = threading.Event(), threading.Event()
    main = live_page.main

    def late(*arguments: object) -> str:
        rendering.set()
        go_on.wait(PATIENCE)
        return main(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(live_page, "main", late)
    run = make_running(tmp_path, running_step("train"))

    async def execute() -> None:
        page = LivePage(tmp_path, interval=0.001)
        page.started(run)
        await until(rendering.is_set)
        run.status = Status.COMPLETED
        page.finish(run)
        go_on.set()

    asyncio.run(execute())  # waits for the thread
    assert "✓ Completed" in Page((tmp_path / "run.html").read_text("utf-8")).text
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_what_is_rendered_is_the_run_at_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunRecord] = []

    def keep(run: RunRecord, *_: object) -> str:
        seen.append(run)
        return ""

    monkeypatch.setattr(live_page, "main", keep)
    run = make_running(tmp_path, make_step("prepare"), running_step("train"))

    async def execute() -> None:
        page = LivePage(tmp_path, interval=0.001)
        page.started(run)
        await until(lambda: len(seen) == 1)
        run.steps[0].notes.append("later")
        run.steps[1].metrics["loss"] = make_curve(1.0)
        run.add(make_step("evaluate"))
        page.noted(run, run.steps[0], "later")
        await until(lambda: len(seen) == 2)
        page.finish(run)

    asyncio.run(execute())
    first, second = seen[:2]
    assert ([step.name for step in first.steps], first.steps[0].notes, first.steps[1].metrics) == (
        ["prepare", "train"],
        [],
        {},
    )
    assert second.steps[0].notes == ["later"]
    assert list(second.steps[1].metrics) == ["loss"]
    assert second.step("evaluate").name == "evaluate"
