"""What a run produced: its outputs, the models that it registered, and what its steps reported."""

import json
from pathlib import Path

from allranks.cli.console import to_json
from allranks.cli.views.summary import summary
from allranks.history.formatting import models_of, outputs_of, reported_results
from allranks.history.page.page import page
from allranks.history.records import ModelRecord
from run_records import NOW, make_run, make_step
from shown_page import Page


def test_a_command_job_also_has_the_files_below_its_outputs(tmp_path: Path) -> None:
    step = make_step("fit", artifacts=["outputs/a", "outputs/b"], folder=str(tmp_path))
    job = make_run(step, name="fit", outputs={"model": "/models/1"})
    assert outputs_of(job) == {"model": "/models/1", "./outputs": f"{tmp_path}/outputs (2 files)"}
    assert outputs_of(make_run(step, outputs={"model": "/models/1"})) == {"model": "/models/1"}


def test_every_version_is_listed_with_the_step_that_registered_it() -> None:
    run = make_run(
        make_step("a", models=[ModelRecord("digits", "3"), ModelRecord("words", "1")]),
        make_step("b", models=[ModelRecord("digits", "4")], reused_from="old_run"),
    )
    assert models_of(run) == {
        "digits": "version 3 (by a), version 4 (by b in run old_run)",
        "words": "version 1 (by a)",
    }


def test_a_loops_last_iteration_reports() -> None:
    run = make_run(
        make_step("loop[0].check", result="below"), make_step("loop[1].check", result="reached"), make_step("fit")
    )
    assert reported_results(run) == {"loop[1].check": "reached"}


def test_the_summary_the_page_and_json_show_them() -> None:
    step = make_step("promote", models=[ModelRecord("digits", "3")], result="registered: it is better")
    run = make_run(step, outputs={"model": "/models/1"})
    for text in (summary(run).plain, Page(page(run, NOW)).text):
        words = " ".join(text.split()).lower()
        assert "model /models/1" in words
        assert "registered models digits version 3 (by promote)" in words
        assert "results promote registered: it is better" in words
    record = json.loads(to_json(run))["steps"][0]
    assert (record["models"], record["result"]) == ([{"name": "digits", "version": "3"}], "registered: it is better")
