"""The page of all runs of a workspace."""

from pathlib import Path

from allranks.history import stored
from allranks.history.page.runs_page import NAME, runs_page, write_runs_page
from allranks.history.store import Store
from allranks.workspace import Workspace
from run_records import NOW, trained_run
from shown_page import Page


def test_the_runs_of_a_pipeline_share_a_table_and_charts(tmp_path: Path) -> None:
    runs = [trained_run(2), trained_run(1)]
    shown = Page(runs_page(tmp_path, runs, runs, {}, NOW))
    assert "2 runs" in shown.text
    assert "accuracy lr" in shown.text  # the head: of the inputs, only the one that differs
    assert "seed" not in shown.text
    assert "run02 ✓ Completed" in shown.text
    assert [value["aria-label"] for tag, value in shown.tags if tag == "svg" and "aria-label" in value] == [
        "loss of train by step",
        "speed of train by step",
    ]
    assert [tag for tag, value in shown.tags if value.get("class") == "series s1"] == ["th", *["span", "g"] * 2]


def test_a_page_of_a_schedule_has_its_champions(tmp_path: Path) -> None:
    runs = [trained_run(2), trained_run(1)]
    about = {"schedule": "nightly", "champions": {"run02": "digits:3", "run01": ""}}
    shown = Page(runs_page(tmp_path, runs, runs, {}, NOW, about))
    assert "Schedule nightly 2 runs" in shown.text
    assert "digits:3" in shown.text
    assert "allranks schedules history nightly --page" in shown.text


def test_a_run_keeps_its_colour_where_another_one_has_no_curve(tmp_path: Path) -> None:
    runs = [trained_run(2), trained_run(1)]
    del runs[0].steps[0].metrics["loss"]
    shown = Page(runs_page(tmp_path, runs, runs, {}, NOW))
    assert [value["class"] for tag, value in shown.tags if tag == "g"] == ["series s1", "series s0", "series s1"]


def test_of_many_runs_the_newest_and_the_best_are_drawn_and_a_damaged_one_is_listed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / ".allranks")
    workspace.make()
    with Store(workspace.database) as store:
        for number in range(10):
            run = trained_run(number, page=str(workspace.run_folder(f"run{number:02}") / "run.html"))
            store.add_run(run, "{}")
            store.add_points(run.id, "train", [("loss", point) for point in run.steps[0].metrics["loss"]])
        store.connection.execute("UPDATE run SET record = '{' WHERE id = 'run08'")
        store.connection.execute("UPDATE node SET record = '{' WHERE run = 'run07'")
    Path(workspace.run_folder("run09")).mkdir(parents=True)
    (workspace.run_folder("run09") / "run.html").touch()
    unreadable: dict[str, str] = {}
    runs = stored.runs(workspace, steps=False, unreadable=unreadable.__setitem__)
    assert [*unreadable] == ["run08"]
    assert write_runs_page(workspace, runs, unreadable) == workspace.root / NAME
    shown = Page((workspace.root / NAME).read_text())
    assert "2 runs unreadable" in shown.text
    assert "Curves of 5 of 8 runs: the newest, and the best." in shown.text
    assert [value.get("href") for tag, value in shown.tags if tag == "a"] == ["runs/run09/run.html"]
    legend = shown.text.partition("loss train ")[2]
    assert [name in legend for name in ("run00", "run09", "run08", "run01")] == [True, True, False, False]
