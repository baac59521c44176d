"""The page of a run while the run goes on."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from allranks.history.page import live_page, page
from allranks.history.page.live_page import LivePage
from allranks.history.records import RunRecord, Status
from allranks.history.store import Store
from run_records import make_curve, make_run, make_step
from shown_page import Page

PATIENCE = 30


@pytest.fixture
def run(tmp_path: Path) -> RunRecord:
    folder = tmp_path / "calm_otter"
    folder.mkdir()
    training = make_step("train", status=Status.RUNNING, ended=None)
    return make_run(training, folder=str(folder), status=Status.RUNNING, ended=None)


@pytest.fixture
def live(tmp_path: Path, run: RunRecord, monkeypatch: pytest.MonkeyPatch) -> LivePage:
    for name in ("_INTERVAL", "_FIRST", "_SHARE"):
        monkeypatch.setattr(live_page, name, 0.001)
    with Store(tmp_path / "db") as store:
        store.add_run(run, "{}")
    return LivePage(run, tmp_path / "db")


async def until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(poll(), PATIENCE)


def test_the_page_follows_the_run_to_its_end(tmp_path: Path, run: RunRecord, live: LivePage) -> None:
    async def execute() -> None:
        live.start(1)
        await until(lambda: live.path.exists() and "step-train" in live.path.read_text("utf-8"))
        with Store(tmp_path / "db") as store:
            store.add_points(run.id, "train", [("loss", point) for point in make_curve(1.0, 0.125)])
        await until(lambda: "0.125" in live.path.read_text("utf-8"))
        assert "<body data-live>" in live.path.read_text("utf-8")
        assert "allranks resume calm_otter" in live.path.read_text("utf-8")
        run.status = run.steps[0].status = Status.COMPLETED
        live.finish(run)

    asyncio.run(execute())
    html = live.path.read_text("utf-8")
    assert [path.name for path in live.path.parent.iterdir()] == ["run.html"]
    assert "✓ Completed" in Page(html).text
    assert "<body data-live>" not in html


def test_the_next_update_waits_twenty_times_as_long_as_the_last_one_took(
    run: RunRecord, live: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    pauses: list[float] = []

    def slow() -> None:
        nonlocal now
        now += 3.0

    async def rest(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise asyncio.CancelledError

    monkeypatch.setattr(live, "_update", slow)
    monkeypatch.setattr(live_page, "_SHARE", 20)
    # Only the page's clock: the event loop needs one that advances.
    monkeypatch.setattr(live_page, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    monkeypatch.setattr(live_page, "_sleep", rest)

    async def execute() -> None:
        live.start(1000)
        await until(lambda: len(pauses) == 2)

    asyncio.run(execute())
    assert pauses == pytest.approx([1.001, 60])


def test_an_update_that_fails_does_not_end_the_run_and_the_next_one_is_tried(
    run: RunRecord, live: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = live_page.write_file
    failures = [OSError(28, "no space left on device"), ValueError("bad")]

    def write_later(path: Path, text: str) -> None:
        if failures:
            raise failures.pop()
        write(path, text)

    monkeypatch.setattr(live_page, "write_file", write_later)

    async def execute() -> None:
        live.start(1)
        await until(live.path.exists)

    asyncio.run(execute())
    assert not failures


def test_an_update_that_is_late_does_not_replace_the_last_page(
    run: RunRecord, live: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendering, go_on = threading.Event(), threading.Event()
    render = page.page

    def late(*arguments: object) -> str:
        if threading.current_thread() is not threading.main_thread():  # not the last page
            rendering.set()
            go_on.wait(PATIENCE)
        return render(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(page, "page", late)

    async def execute() -> None:
        live.start(1)
        await until(rendering.is_set)
        run.status = Status.COMPLETED
        live.finish(run)
        go_on.set()

    asyncio.run(execute())  # waits for the thread
    assert "✓ Completed" in Page(live.path.read_text("utf-8")).text
