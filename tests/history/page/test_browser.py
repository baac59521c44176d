"""The page of a run in a browser: how it looks, filters, folds, links, and follows a run.

The pictures are in the tests' temporary folder; `pytest --basetemp DIR` keeps them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from allranks.history.page.live_page import live_script
from allranks.history.page.log_excerpts import LogExcerpts
from allranks.history.page.page import Live, document, main, write_page
from allranks.history.records import RunRecord, Status
from allranks.history.workspace import write_file
from chromium import PROGRAM, Browser, assert_self_contained, chromium, take_pictures
from run_records import make_curve, make_run, make_step
from shown_runs import failing_training, large_running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="this machine has no Chromium"),
    pytest.mark.xdist_group("chromium"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


def write_live(run: RunRecord, now: float | None = None, within: float = 10) -> Path:
    """Write what the engine writes while the run goes on."""
    folder = Path(run.folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = main(run, now or time.time(), LogExcerpts())
    live = Live(time.time() if within else 0, within)
    write_file(folder / Live.SCRIPT, live_script(run, text, live))
    write_file(folder / "run.html", document(run, text, live))
    return folder / "run.html"


def write_ended(run: RunRecord, now: float | None = None) -> Path:
    folder = Path(run.folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_page(run, folder / "run.html", now)
    (folder / Live.SCRIPT).unlink(missing_ok=True)
    return folder / "run.html"


def test_a_running_pipeline_of_a_thousand_steps(browser: Browser, tmp_path: Path) -> None:
    run, now = large_running(tmp_path / "runs" / "calm_otter", begin=time.time() - 745)
    tab = browser.open(write_live(run, now).as_uri())
    take_pictures(tab, tmp_path, "running_thousand")
    assert tab.evaluate("document.querySelectorAll('a.cell').length") == 1000
    assert_self_contained(tab)
    # Filtered by name, by state, and by what the logs say.
    visible = "[...document.querySelectorAll('#details .entry[id]')].filter((each) => each.checkVisibility()).length"
    before = tab.evaluate(visible)
    assert before < 300
    tab.type("#search", "tokenize_21")
    tab.wait_for(f"{visible} === 10")
    assert tab.text("#found") == "10 steps"
    tab.click("#only-Failed")
    tab.wait_for(f"{visible} === 1")
    tab.type("#search", "position 4711")
    tab.wait_for(f"{visible} === 2")
    assert tab.text("#found") == "2 steps, 2 lines"
    assert tab.evaluate("document.querySelectorAll('mark').length") == 2
    tab.screenshot(tmp_path / "running_thousand_filtered.png", whole=False)
    tab.click("#only-Failed")
    tab.type("#search", "")
    tab.wait_for(f"{visible} === {before}")
    # A square of the overview leads to the step, which is folded until then.
    tab.click("a.cell[href='#step-tokenize_300']")
    tab.wait_for("document.getElementById('step-tokenize_300').checkVisibility()")
    assert tab.evaluate("document.getElementById('step-tokenize_300').open")


def test_a_failing_training_on_two_instances_with_eight_processes(browser: Browser, tmp_path: Path) -> None:
    run, now = failing_training(tmp_path / "runs" / "calm_otter")
    tab = browser.open(write_ended(run, now).as_uri())
    take_pictures(tab, tmp_path, "failing_training")
    assert_self_contained(tab)
    assert "rank 11 on instance 1: ValueError: loss is NaN" in tab.text(".verdict")
    assert "ValueError: loss is NaN" in tab.text("[id='step-train/11'] .log")
    assert not tab.evaluate("document.querySelector(\"[id='step-train/3'] .log\").checkVisibility()")
    tab.type("#search", "connection closed")
    tab.wait_for("document.getElementById('found').textContent === '1 step, 15 lines'")
    tab.type("#search", "")
    tab.wait_for("document.getElementById('found').textContent === ''")
    assert not tab.evaluate("document.querySelector(\"[id='step-train/3'] .log\").checkVisibility()")
    # A copy of the folder keeps its logs.
    (tmp_path / "runs").rename(tmp_path / "sent by mail")
    copy = browser.open((tmp_path / "sent by mail/calm_otter/run.html").as_uri())
    link = copy.evaluate("document.querySelector(\"[id='step-train/11'] .file a\").href")
    copy.call("Page.navigate", url=link)
    copy.wait_for("document.body?.innerText.includes('loss is NaN at step 401')")


def test_an_open_page_follows_the_run_and_keeps_what_its_reader_does(browser: Browser, tmp_path: Path) -> None:
    steps = [make_step(f"step_{index}", inputs={"epochs": "3"}) for index in range(40)]
    train = make_step("train", status=Status.RUNNING, ended=None, inputs={"epochs": "3"})
    run = make_run(
        *steps, train, folder=str(tmp_path / "run"), status=Status.RUNNING, ended=None, created=time.time() - 5
    )
    tab = browser.open(write_live(run).as_uri())
    # The reader unfolds a step, types, scrolls, and selects a word.
    tab.click("#step-step_30 > summary")
    tab.type("#search", "step_3")
    tab.wait_for("document.getElementById('found').textContent === '11 steps'")
    tab.evaluate("document.getElementById('search').focus(); document.getElementById('details').scrollIntoView(); 0")
    tab.evaluate("getSelection().selectAllChildren(document.querySelector('#step-step_31 b'))")
    scrolled = tab.evaluate("scrollY")
    kept = tab.evaluate("(window.row = document.getElementById('step-step_30'), 1)")
    assert (kept, scrolled > 0) == (1, True)
    above = tab.evaluate("window.row.getBoundingClientRect().top")
    train.metrics = {"loss": make_curve(2.0, 0.0625)}
    run.add(make_step("step_3_again", ("train",)))
    write_live(run)
    tab.wait_for("document.getElementById('step-train').textContent.includes('0.0625')")
    tab.wait_for("document.getElementById('found').textContent === '12 steps'")
    assert tab.evaluate("document.getElementById('step-step_30') === window.row && window.row.open")
    assert tab.evaluate("getSelection().toString()") == "step_31"
    assert tab.evaluate("document.activeElement.id") == "search"
    # A chart was added above, and what the reader looks at has not moved.
    assert tab.evaluate("window.row.getBoundingClientRect().top") == pytest.approx(above, abs=3)
    assert tab.evaluate(
        "((ids) => new Set(ids).size === ids.length)([...document.querySelectorAll('[id]')].map((each) => each.id))"
    )
    # The time of a run that goes on does not wait for an update.
    first = tab.text(".lead [data-since]")
    tab.wait_for(f"document.querySelector('.lead [data-since]').innerText !== {first!r}")
    assert_self_contained(tab)
    # When the run has ended, the page is loaded once more, and needs the file no longer.
    run.status = train.status = Status.COMPLETED
    run.ended = train.ended = time.time()
    write_ended(run)
    tab.wait_for("document.body.dataset.live === undefined && document.readyState === 'complete'")
    assert "Completed" in tab.text(".lead")
    assert tab.evaluate("document.getElementById('search').value") == "step_3"
    assert tab.evaluate("document.getElementById('step-step_30').open")
    assert tab.evaluate("scrollY") > 0


def test_a_page_whose_engine_was_killed_says_when_it_was_updated_last(browser: Browser, tmp_path: Path) -> None:
    run = make_run(make_step("train", status=Status.RUNNING, ended=None), folder=str(tmp_path), status=Status.RUNNING)
    tab = browser.open(write_live(run, within=0).as_uri())
    tab.wait_for("!document.getElementById('stale').hidden")
    assert "Last updated at" in tab.text("#stale")
    assert "allranks resume calm_otter" in tab.text("#stale")
    take_pictures(tab, tmp_path, "killed")


def test_a_copy_of_a_page_without_the_file_that_updates_it_is_shown(browser: Browser, tmp_path: Path) -> None:
    run = make_run(make_step("train"), folder=str(tmp_path), status=Status.RUNNING, ended=None)
    path = write_live(run)
    (tmp_path / Live.SCRIPT).unlink()
    tab = browser.open(path.as_uri())
    tab.wait_for("history.state?.written !== undefined && document.readyState === 'complete'")
    tab.wait_for("document.getElementById('details')?.innerText.includes('train')")


def test_a_text_of_a_user_is_not_run_when_a_page_is_updated(browser: Browser, tmp_path: Path) -> None:
    run = make_run(make_step("train"), folder=str(tmp_path), status=Status.RUNNING, ended=None)
    tab = browser.open(write_live(run).as_uri())
    evil = "</script><script>window.evil = 1</script><img src=x onerror='window.evil = 1'>\u2028\\'\""
    run.add(make_step("later", inputs={evil: evil}, component=evil, notes=[evil]))
    write_live(run)
    tab.wait_for("document.getElementById('notes')")
    assert evil.replace("\u2028", "") in tab.text("#notes").replace("\u2028", "")
    assert tab.evaluate("window.evil") is None
    assert_self_contained(tab)


def test_the_values_of_a_chart_are_shown_at_the_pointer(browser: Browser, tmp_path: Path) -> None:
    run, now = failing_training(tmp_path / "run")
    tab = browser.open(write_ended(run, now).as_uri())
    tab.evaluate("document.querySelector('[data-chart] > svg').scrollIntoView({ block: 'center' })")
    box = tab.evaluate("document.querySelector('[data-chart] > svg').getBoundingClientRect().toJSON()")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    tab.wait_for("document.querySelector('.tip')?.innerText.includes('train_loss')")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    tab.wait_for("document.querySelector('.tip') === null")
