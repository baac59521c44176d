import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cattrs import Converter

from allranks.catalog.declared_ports import Port
from allranks.catalog.find import ComponentInfo
from allranks.cli.commands.components import describe, print_components
from allranks.cli.console import print_problems, problems_text, to_json, with_links
from allranks.cli.views.progress import PlainLines
from allranks.cli.views.run_list import print_runs
from allranks.cli.views.runs import print_run
from allranks.errors import Problem
from allranks.history.records import Point, RunRecord

Screens = Callable[..., Any]


def test_a_run_with_its_steps_ranks_of_the_failed_one_and_the_verdict(screen: Screens, failed: RunRecord) -> None:
    console = screen()
    print_run(console, failed, now=failed.created + 60)
    text = console.text.getvalue()
    for said in ("calm_otter", "pipelines/digits.py", "reused from brave_heron", "pytorch 2 x 2", "SIGTERM"):
        assert said in text
    assert [line for line in console.lines if line.split()[:2] == ["3", "1"] and "exit code 17" in line]
    assert "allranks logs calm_otter train --rank 3" in text
    assert max(map(len, console.lines)) <= 80 + len(failed.steps[1].verdict.log)


def test_notes_are_shown_with_their_step(screen: Screens, completed: RunRecord) -> None:
    console = screen()
    print_run(console, completed)
    assert [line for line in console.lines if "evaluate" in line and "forgiven" in line]


def test_runs_are_a_line_each_with_results_where_there_is_room(screen: Screens, completed: RunRecord) -> None:
    narrow, wide = screen(80), screen(140)
    completed.results = {"test_accuracy": 0.97777, "accuracy": 0.99}
    print_runs(narrow, [completed, completed])
    print_runs(wide, [completed, completed])
    assert len(narrow.lines) == len(wide.lines) == 5
    assert wide.lines[0].endswith("test_accuracy")
    assert wide.lines[3].endswith("0.9778")
    assert "calm_otter" in narrow.lines[3]
    assert max(map(len, narrow.lines)) <= 80


@pytest.mark.parametrize("terminal", [True, False])
def test_paths_and_addresses_are_links_on_a_terminal(
    screen: Screens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/run.html").touch()
    console = screen(80, terminal)
    console.print(with_links(console, "page runs/run.html:3, https://ml.azure.com/x. and gone/run.html 1/2"))
    links = re.findall(r"\x1b]8;id=\d+;(.*?)\x1b", console.text.getvalue())
    assert links == ["file://" + str(tmp_path / "runs/run.html"), "https://ml.azure.com/x"] * terminal


def test_a_run_fits_in_80_columns(screen: Screens, completed: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    completed.step("train").component = "allranks_train_image_classifier"
    completed.outputs = {"model": "/runs/calm_otter/train/named-outputs/model"}
    console = screen(80)
    print_run(console, completed)
    assert max(map(len, console.lines)) <= 80
    assert "  page  runs/calm_otter/run.html" in console.lines


def test_no_runs_say_how_to_start_one(screen: Screens) -> None:
    console = screen()
    print_runs(console, [])
    assert "allranks run" in console.text.getvalue()


def test_a_component_with_launch_ports_and_what_may_be_given(screen: Screens) -> None:
    ports = (
        Port("epochs", "integer", "How often.", default=5, minimum=1, maximum=100),
        Port("model", "string", enum=("cnn", "mlp"), optional=True),
        Port("seed", "integer", minimum=0),
        Port("data", "uri_folder"),
    )
    component = ComponentInfo(
        "train",
        "0.1.0",
        "Train",
        "Trains it.",
        "pytorch",
        2,
        4,
        ports,
        (Port("out", "uri_folder"),),
        "e",
        True,
        Path("/train/component.yaml"),
    )
    console = screen()
    describe(console, component)
    text = " ".join(console.text.getvalue().split())
    for said in (
        "train 0.1.0 Trains it.",
        "layout pytorch 2 x 4",
        "Inputs epochs integer, 1 to 100, default 5 How often.",
        "model string, cnn | mlp, optional",
        "seed integer, at least 0",
        "Outputs out uri_folder",
        'load_component("/train/component.yaml")',
        'train_pipeline(seed: Input(type="integer"), data: Input(type="uri_folder"))',
    ):
        assert said in text
    listed = screen()
    print_components(listed, [replace(component, description=f"Trains it {'well ' * 20}. It is quick.")] * 2)
    assert [len(line) for line in listed.lines if "Trains it" in line] == [80, 80]
    assert json.loads(to_json([component]))[0]["path"] == "/train/component.yaml"


def test_a_record_as_json_has_words_for_states_and_can_be_read_back(failed: RunRecord) -> None:
    text = to_json(failed)
    read = json.loads(text)
    assert read["status"] == "Failed"
    assert read["steps"][1]["verdict"]["exit_code"] == 17
    assert read["steps"][1]["needs"] == ["prepare"]
    assert Converter().structure(json.loads(text), RunRecord) == failed


def test_json_stays_json_where_a_loss_is_no_number(failed: RunRecord) -> None:
    values = [math.nan, math.inf, -math.inf]
    failed.steps[1].metrics = {"loss": [Point(step, value, 0.0) for step, value in enumerate(values)]}
    text = to_json(failed)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    points = json.loads(text, parse_constant=refuse)["steps"][1]["metrics"]["loss"]
    assert [point["value"] for point in points] == ["NaN", "Infinity", "-Infinity"]
    back = [point.value for point in Converter().structure(json.loads(text), RunRecord).steps[1].metrics["loss"]]
    assert math.isnan(back[0])
    assert back[1:] == values[1:]


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            Problem("step train", "0 instances", "1 or more", "set it to 1"),
            ["step train", "0 instances", "1 or more", "set"],
        ),
        (Problem("", "nothing is there"), ["nothing is there"]),
        (Problem("file", "\x1b[2Jodd\nlines"), ["odd", "lines"]),
    ],
)
def test_a_problem_says_all_that_it_knows(screen: Screens, problem: Problem, said: list[str]) -> None:
    console = screen()
    console.print(problems_text([problem]), soft_wrap=True)
    text = console.text.getvalue()
    assert all(word in text for word in said)
    assert "\x1b" not in text


def test_several_problems_are_counted(screen: Screens) -> None:
    console = screen()
    console.print(problems_text([Problem("a", "x"), Problem("b", "y")]), soft_wrap=True)
    assert "2 problems" in console.text.getvalue()


def test_problems_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_problems([Problem("step train", "0 instances")])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "step train" in captured.err


def test_a_long_exception_is_printed_once(screen: Screens, failed: RunRecord) -> None:
    text = "ValueError: " + "the shape of the batch is wrong, " * 20
    train = failed.step("train")
    assert train.verdict is not None
    tail = ("step 198", "Traceback (most recent call last):", f"[rank3]: {text}", text)
    train.verdict = replace(train.verdict, reason=text.strip(), tail=tail)
    console = screen(400)
    print_run(console, failed, now=failed.created + 60)
    printed = " ".join(console.text.getvalue().split())
    assert printed.count(" ".join(text.split())) == 1
    assert "step 198" in printed
    lines = PlainLines(console := screen(400))
    lines.changed(failed, train)
    assert len(console.text.getvalue()) < 300
    assert "…" in console.text.getvalue()


def test_a_short_exception_stays_in_the_lines_of_the_log(screen: Screens, failed: RunRecord) -> None:
    console = screen()
    print_run(console, failed, now=failed.created + 60)
    assert "│ ValueError: bad batch" in console.text.getvalue()
