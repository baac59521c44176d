"""The page of a run in a browser: how it looks, filters, folds, links, and follows a run.

The pictures are in the tests' temporary folder; `pytest --basetemp DIR` keeps them.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accessibility import assert_accessible, needs_axe
from allranks.history.page.page import page as rendered
from allranks.history.page.runs_page import runs_page
from allranks.history.records import RunRecord, Status
from chromium import PROGRAM, Browser, assert_self_contained, chromium, take_pictures
from run_records import make_curve, make_run, make_step, make_sweep, trained_run, write_matrix
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


def write(run: RunRecord, now: float | None = None) -> Path:
    folder = Path(run.folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.html").write_text(rendered(run, now or time.time()), encoding="utf-8")
    return folder / "run.html"


@pytest.mark.recipe
def test_a_running_pipeline_of_a_thousand_steps(browser: Browser, tmp_path: Path) -> None:
    run, now = large_running(tmp_path / "runs" / "calm_otter", begin=time.time() - 745)
    page = write(run, now)
    # Where the machine is busy, a page that loads itself again every 5 s loses the commands under way.
    page.write_text(page.read_text().replace("<body data-live>", "<body>"))
    tab = browser.open(page.as_uri())
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


@needs_axe
def test_the_page_of_all_runs(browser: Browser, tmp_path: Path) -> None:
    runs = [trained_run(number) for number in (3, 2, 1)]
    other = trained_run(0, name="other", status=Status.RUNNING, ended=None)
    text = runs_page(tmp_path, [*runs, other], runs, {"run04": "a record cannot be read"}, time.time())
    (tmp_path / "runs.html").write_text(text, encoding="utf-8")
    tab = browser.open((tmp_path / "runs.html").as_uri())
    take_pictures(tab, tmp_path, "runs")
    assert_self_contained(tab)
    assert_accessible(tab)


def test_a_failing_training_on_two_instances_with_eight_processes(browser: Browser, tmp_path: Path) -> None:
    run, now = failing_training(tmp_path / "runs" / "calm_otter")
    tab = browser.open(write(run, now).as_uri())
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
    # What does not fit a filter is faded in the graph and in the timeline, whose bars lead to the steps.
    tab.click("#only-Failed")
    faded = "[...document.querySelectorAll('SECTION [data-x-dim]')].map((each) => each.getAttribute('href')).join()"
    others = "#step-prepare,#step-evaluate,#step-register"
    assert [tab.evaluate(faded.replace("SECTION", each)) for each in ("#graph", "#timeline")] == [others] * 2
    tab.click("#only-Failed")
    click = "dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))"
    tab.evaluate(f"document.querySelector('#timeline [href$=prepare] .bar').{click}")
    tab.wait_for("document.getElementById('step-prepare').open")
    # A copy of the folder keeps its logs.
    (tmp_path / "runs").rename(tmp_path / "sent by mail")
    copy = browser.open((tmp_path / "sent by mail/calm_otter/run.html").as_uri())
    link = copy.evaluate("document.querySelector(\"[id='step-train/11'] > .caption a\").href")
    copy.call("Page.navigate", url=link)
    copy.wait_for("document.body?.innerText.includes('loss is NaN at step 401')")


def test_an_open_page_follows_the_run_and_keeps_what_its_reader_has_unfolded_and_typed(
    browser: Browser, tmp_path: Path
) -> None:
    steps = [make_step(f"step_{index}", inputs={"epochs": "3"}) for index in range(40)]
    train = make_step("train", status=Status.RUNNING, ended=None, inputs={"epochs": "3"})
    run = make_run(
        *steps, train, folder=str(tmp_path / "run"), status=Status.RUNNING, ended=None, created=time.time() - 5
    )
    tab = browser.open(write(run).as_uri())
    tab.click("#step-step_30 > summary")
    tab.type("#search", "step_3")
    tab.wait_for("document.getElementById('found').textContent === '11 steps'")
    tab.evaluate("document.getElementById('search').blur(); document.getElementById('details').scrollIntoView(); 0")
    assert "State at" in tab.text("#header")
    evil = "</script><script>window.evil = 1</script><img src=x onerror='window.evil = 1'>"
    train.metrics = {"loss": make_curve(2.0, 0.0625)}
    train.notes = [evil]
    write(run)
    tab.wait_for("document.getElementById('step-train')?.textContent.includes('0.0625')")
    assert evil in tab.text("#notes")
    assert tab.evaluate("window.evil") is None
    assert_self_contained(tab)
    run.status = train.status = Status.COMPLETED
    run.ended = train.ended = time.time()
    write(run)
    tab.wait_for("document.body?.dataset.live === undefined && document.readyState === 'complete'")
    assert "Completed" in tab.text(".lead")
    assert tab.evaluate("document.getElementById('search').value") == "step_3"
    assert tab.evaluate("document.getElementById('step-step_30').open")
    assert tab.evaluate("scrollY") > 0


def test_the_values_of_a_chart_are_shown_at_the_pointer(browser: Browser, tmp_path: Path) -> None:
    run, now = failing_training(tmp_path / "run")
    tab = browser.open(write(run, now).as_uri())
    tab.evaluate("document.querySelector('[data-chart] > svg').scrollIntoView({ block: 'center' })")
    box = tab.evaluate("document.querySelector('[data-chart] > svg').getBoundingClientRect().toJSON()")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    tab.wait_for("document.querySelector('.tip')?.innerText.includes('train_loss')")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    tab.wait_for("document.querySelector('.tip') === null")


@needs_axe
def test_the_pages_of_runs_can_be_read_by_all(browser: Browser, tmp_path: Path) -> None:
    failed, now = failing_training(tmp_path / "runs" / "failed")
    completed = make_run(
        make_step("train", metrics={"loss": make_curve(2.0, 1.0)}), folder=str(tmp_path / "runs/whole")
    )
    matrix = [[10 * share, 100 - 10 * share] for share in range(11)]
    write_matrix(tmp_path / "c.json", [*range(11)], [[*row, *[0] * 9] for row in matrix])
    completed.steps[0].folder, completed.steps[0].artifacts = str(tmp_path), ["c.json"]
    tuned = make_run(*make_sweep((0.6, 0.8, None, 0.9)), folder=str(tmp_path / "runs/swept"))
    for run, width in ((failed, 390), (completed, 390), (tuned, 1440)):
        tab = browser.open(write(run, now).as_uri(), width)
        assert_accessible(tab)
        assert_self_contained(tab)
    tab.resize(390, 900)
    assert not tab.is_too_wide()
    # On a phone, a list of the trials stands for the picture.
    assert not tab.evaluate("document.querySelector('.parallel').checkVisibility()")
    assert tab.evaluate("getComputedStyle(document.querySelector('.trials td'), '::before').content") == '"lr"'
