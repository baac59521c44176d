from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allranks.local.page.chart import charts
from allranks.local.page.confusion import LARGEST_FILE, LARGEST_MATRIX, confusions
from allranks.local.page.graph import graph
from allranks.local.page.page import page, write_page
from allranks.local.page.scale import count_scale, time_scale, value_scale
from allranks.local.page.timeline import LABELS, WIDTH, timeline
from allranks.local.record import OutputRecord, Point, RankRecord, RunRecord, Status, StepRecord, Verdict

BEGIN = 1783166584.0
NOW = BEGIN + 100
EVIL = """<script>alert(1)</script>"'><img src=x onerror=alert(1)> ${{x}} {{ 7 * 7 }}"""
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """The page as a reader sees it; fails where a tag is closed that was not open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.said.append(data)


def make_step(name: str, needs: tuple[str, ...] = (), **changes: Any) -> StepRecord:
    step = StepRecord(name, "", "component", "none", 1, 1, needs, Status.COMPLETED, 0, BEGIN + 1, BEGIN + 5)
    for key, value in changes.items():
        setattr(step, key, value)
    return step


def make_run(*steps: StepRecord, **changes: Any) -> RunRecord:
    run = RunRecord("calm_otter", "digits", "Digits", "digits.py", "rack", Status.COMPLETED, BEGIN, BEGIN + 60)
    run.steps = list(steps)
    for key, value in changes.items():
        setattr(run, key, value)
    return run


def make_curve(*values: float) -> list[Point]:
    return [Point(step, value, BEGIN + step) for step, value in enumerate(values)]


def make_ranks(instances: int, processes: int) -> list[RankRecord]:
    return [
        RankRecord(rank, rank // processes, rank % processes, "host", Status.COMPLETED, BEGIN + 1, BEGIN + 4, 0)
        for rank in range(instances * processes)
    ]


def test_a_completed_run_shows_what_a_user_asks_of_it() -> None:
    train = make_step("train", ("prepare",), distribution="pytorch", instance_count=2, process_count_per_instance=2)
    train.ranks = make_ranks(2, 2)
    train.metrics = {"train_loss": make_curve(2.0, 1.0, 0.5), "validation_loss": make_curve(2.1, 1.2)}
    train.inputs = {"epochs": "5"}
    train.outputs = [OutputRecord("model", "uri_folder", "/runs/model"), OutputRecord("score", "number", "/x", "0.975")]
    evaluate = make_step("evaluate", ("train",), metrics={"test_accuracy": make_curve(0.9778)}, notes=["forgiven"])
    run = make_run(make_step("prepare", reused_from="brave_heron"), train, evaluate, outputs={"final": "/runs/final"})
    shown = Page(page(run, NOW))
    for said in (
        "Digits",
        "✓ Completed",
        "1 min 00 s",
        "pytorch 2 x 2",
        "0.9778",
        "reused from brave_heron",
        "train_loss 0.5",
        "component",
        "epochs",
        "0.975",
        "forgiven",
        "/runs/final",
    ):
        assert said in shown.text, said
    assert ("a", {"href": "file:///runs/model"}) in shown.tags


def test_a_failed_run_shows_who_why_the_log_and_what_next() -> None:
    verdict = Verdict(
        "train", "ValueError: bad", 3, 1, 17, None, "/runs/std_log_process_3.txt", ("step 9", "boom"), "TB"
    )
    run = make_run(make_step("train", status=Status.FAILED, verdict=verdict), status=Status.FAILED)
    text = Page(page(run, NOW)).text
    for said in (
        "train failed: rank 3 on instance 1 ended with exit code 17",
        "ValueError: bad",
        "/runs/std_log_process_3.txt",
        "step 9 boom",
        "TB",
        "allranks logs calm_otter train --rank 3",
        "allranks resume calm_otter",
    ):
        assert said in text, said


def test_text_of_users_is_text_wherever_it_stands(tmp_path: Path) -> None:
    labels = [EVIL, "b"]
    write_matrix(tmp_path / "c.json", labels, [[1, 2], [3, 4]])
    step = make_step(
        EVIL,
        component=EVIL,
        distribution=EVIL,
        reused_from=EVIL,
        folder=str(tmp_path),
        artifacts=["c.json"],
        inputs={EVIL: "javascript:alert(1)"},
        outputs=[OutputRecord(EVIL, EVIL, "javascript:alert(1)"), OutputRecord("v", "string", "", EVIL)],
        metrics={EVIL: make_curve(1.0, math.nan, 2.0)},
        notes=[EVIL],
        verdict=Verdict(EVIL, EVIL, 0, 0, 1, None, EVIL, (EVIL,), EVIL),
        ranks=[RankRecord(0, 0, 0, EVIL, Status.FAILED, BEGIN, BEGIN + 1, None, EVIL, EVIL)],
    )
    other = make_step("b" + EVIL, (EVIL,), ranks=[RankRecord(rank, 0, rank, EVIL, started=BEGIN) for rank in (0, 1)])
    run = make_run(step, other, id=EVIL, name=EVIL, display_name=EVIL, source=EVIL, instances=EVIL, notes=[EVIL])
    run.inputs = run.outputs = {EVIL: EVIL}
    shown = Page(page(run, NOW))
    assert [tag for tag, _ in shown.tags].count("script") == 1
    assert not [tag for tag, _ in shown.tags if tag == "img"]
    assert not [attrs for _, attrs in shown.tags if any(name.startswith("on") for name in attrs)]
    assert all((attrs.get("href") or "file://").startswith("file://") for _, attrs in shown.tags)
    assert "<script>alert(1)</script>" in shown.text
    assert "{{ 7 * 7 }}" in shown.text
    data = next(attrs["data-chart"] for _, attrs in shown.tags if "data-chart" in attrs)
    assert json.loads(data or "")["series"][0]["name"] == EVIL


def test_the_page_needs_nothing_from_anywhere_and_allows_its_own_script_alone() -> None:
    html = page(make_run(make_step("train", metrics={"loss": make_curve(1.0, 2.0)})), NOW)
    shown = Page(html)
    fetching = {"src", "srcset", "data", "xlink:href", "action"}
    assert not [attrs for tag, attrs in shown.tags if fetching & set(attrs) or tag in ("link", "iframe", "object")]
    assert "url(" not in html.replace("url(#arrow)", "")
    assert "@import" not in html
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)
    assert script
    allowed = base64.b64encode(hashlib.sha256(script.group(1).encode()).digest()).decode()
    policy = next(attrs["content"] for _, attrs in shown.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"


def test_control_characters_of_a_log_do_not_reach_the_page() -> None:
    verdict = Verdict("train", "bad\x00", 0, 0, 1, None, "/l", ("\x1b[31mred\x1b[0m", "1%\r100%", "\ud800"))
    html = page(make_run(make_step("train", status=Status.FAILED, verdict=verdict)), NOW)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", html)
    assert "red\n100%\n\ufffd" in html
    html.encode()


@pytest.mark.parametrize(
    "run",
    [
        make_run(),
        make_run(status=Status.NOT_STARTED, created=0.0, ended=None),
        make_run(make_step("a", status=Status.NOT_STARTED, started=None, ended=None)),
        make_run(make_step("a", status=Status.RUNNING, ended=None, ranks=make_ranks(8, 8)), status=Status.RUNNING),
        make_run(make_step("a", started=BEGIN - 50, ended=BEGIN - 60)),
        make_run(make_step("a", started=BEGIN, ended=BEGIN), created=BEGIN),
        make_run(make_step("a", needs=("gone", "a", "b")), make_step("b", needs=("a",))),
        make_run(make_step("a", metrics={"none": [], "one": make_curve(1.0)})),
        make_run(make_step("a", metrics={"loss": make_curve(math.nan, math.inf, -math.inf)})),
        make_run(make_step("a", metrics={"loss": make_curve(1e308, -1e308, 1e-320, 0.0)})),
        make_run(make_step("a", metrics={"loss": make_curve(5.0, 5.0, 5.0), "acc": make_curve(0.0, 0.0)})),
        make_run(make_step("a", metrics={"loss": [Point(0, value / 7, BEGIN) for value in range(40)]})),
        make_run(make_step("a", metrics={"x": [Point(10**15 + step, 1e-12 * step, BEGIN) for step in range(9)]})),
        make_run(make_step("a", ended=BEGIN + 1e9)),
    ],
)
def test_odd_runs_have_a_page_whose_drawings_have_numbers_in_them(run: RunRecord) -> None:
    shown = Page(page(run, NOW))
    for tag, attrs in shown.tags:
        for name in {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "d", "viewBox"} & set(attrs):
            assert not re.search("nan|inf|none|e[+-]", attrs[name] or "", re.IGNORECASE), (tag, attrs)
        if tag == "rect":
            assert float(attrs["width"] or "") > 0


def test_a_hundred_steps_of_64_ranks_and_long_curves_stay_a_page_of_a_few_megabytes(tmp_path: Path) -> None:
    steps = [make_step("first")]
    for index in range(99):
        steps.append(make_step(f"step_{index}", ("first",), ranks=make_ranks(8, 8)))
    steps[1].metrics = {"train_loss": make_curve(*(1 / (1 + step) for step in range(10_000)))}
    write_page(make_run(*steps), tmp_path / "run.html", NOW)
    assert (tmp_path / "run.html").stat().st_size < 8_000_000


# Charts


def test_metrics_of_a_family_share_a_chart_and_a_single_value_has_none() -> None:
    metrics = {
        "train_loss": make_curve(2, 1),
        "lr": make_curve(1, 2),
        "val_loss": make_curve(3),
        "accuracy": make_curve(1),
    }
    drawn = charts(make_step("train", metrics=metrics))
    assert [(chart.title, [series.name for series in chart.series]) for chart in drawn] == [
        ("loss", ["train_loss", "val_loss"]),
        ("lr", ["lr"]),
    ]


def test_a_curve_of_ten_thousand_points_is_drawn_with_as_many_as_there_are_pixels() -> None:
    values = [math.sin(step / 30) for step in range(10_000)]
    values[1234] = 7.0
    (chart,) = charts(make_step("train", metrics={"loss": make_curve(*values)}))
    (series,) = chart.series
    assert series.total == 10_000
    assert len(series.points) < 1000
    assert (1234.0, 7.0) in series.points
    assert chart.y is not None
    assert f" {chart.y(7.0)}" in series.path


def test_values_that_are_no_numbers_break_the_line_and_are_marked() -> None:
    (chart,) = charts(make_step("train", metrics={"loss": make_curve(3.0, 2.0, math.nan, math.inf, 1.0)}))
    (series,) = chart.series
    assert series.path.count("M") == 2
    assert [mark.title for mark in series.marks] == ["loss is NaN at 2", "loss is inf at 3"]
    assert [x for x, *_ in chart.data()["series"][0]["points"]] == [0.0, 1.0, 4.0]


@settings(deadline=None)
@given(
    low=st.floats(-1e100, 1e100),
    high=st.floats(-1e100, 1e100),
)
def test_an_axis_covers_its_values_with_few_round_marks(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    scale, ticks = value_scale(low, high, 200, 10)
    assert 9.9 <= scale(high) <= scale(low) <= 200.1
    assert 2 <= len(ticks) <= 12
    assert all(9.9 <= tick.at <= 200.1 for tick in ticks)
    assert [tick.at for tick in ticks] == sorted((tick.at for tick in ticks), reverse=True)


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.1, 0.97, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (2.0, 2.0, ["1.0", "1.5", "2.0", "2.5", "3.0"]),
        (0.0, 4e-11, ["0", "1e-11", "2e-11", "3e-11", "4e-11"]),
        (0, 40_000, ["0", "10,000", "20,000", "30,000", "40,000"]),
    ],
)
def test_marks_are_what_a_person_would_choose(low: float, high: float, labels: list[str]) -> None:
    assert [tick.label for tick in value_scale(low, high, 0, 1)[1]] == labels


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.9, ["0", "0.1 s"]),
        (40, ["0", "5 s"]),
        (300, ["0", "30 s", "1 min", "1 min 30 s"]),
        (7200, ["0", "15 min"]),
        (86400 * 9, ["0", "1 d"]),
    ],
)
def test_marks_of_time_are_what_clocks_count_in(seconds: float, labels: list[str]) -> None:
    found = [tick.label for tick in time_scale(seconds, 0, 100)[1]]
    assert found[: len(labels)] == labels
    assert len(found) <= 13


def test_training_steps_are_marked_with_whole_numbers() -> None:
    assert [tick.label for tick in count_scale(0, 3, 0, 100)[1]] == ["0", "1", "2", "3"]
    assert [tick.label for tick in count_scale(7, 7, 0, 100)[1]] == ["7"]


# The timeline


def test_bars_lie_within_the_picture_and_a_reused_step_has_none() -> None:
    steps = [
        make_step("reused", reused_from="earlier", started=BEGIN - 9999, ended=BEGIN - 9990),
        make_step("short", started=BEGIN, ended=BEGIN),
        make_step("long", started=BEGIN + 1, ended=BEGIN + 50, ranks=make_ranks(8, 8)),
        make_step("goes_on", started=BEGIN + 20, ended=None, status=Status.RUNNING),
        make_step("waits", started=None, ended=None, status=Status.NOT_STARTED),
    ]
    drawn = timeline(make_run(*steps), NOW)
    assert drawn is not None
    rows = {row.step.name: row for row in drawn.rows}
    assert rows["reused"].bar is None
    assert rows["waits"].bar is None
    assert len(rows["long"].ranks) == 64
    for row in drawn.rows:
        for bar in (*row.ranks, *([row.bar] if row.bar else [])):
            assert bar.x >= LABELS
            assert bar.x + bar.width <= WIDTH
            assert bar.y + bar.height <= drawn.height
    assert rows["goes_on"].bar is not None
    assert rows["long"].bar is not None
    assert rows["goes_on"].bar.x > rows["long"].bar.x


def test_a_rank_says_how_it_ended() -> None:
    ranks = make_ranks(1, 2)
    ranks[1].status, ranks[1].signal = Status.FAILED, "SIGKILL"
    drawn = timeline(make_run(make_step("train", ranks=ranks)), NOW)
    assert drawn is not None
    assert "rank 1 · instance 0 · host · Failed · SIGKILL · 3.0 s" in drawn.rows[0].ranks[1].title


# The graph


@st.composite
def runs_of_steps(draw: st.DrawFn) -> list[StepRecord]:
    count = draw(st.integers(1, 40))
    steps = []
    for index in range(count):
        needs = draw(st.lists(st.integers(0, index - 1), max_size=3, unique=True)) if index else []
        steps.append(make_step(f"s{index}", tuple(f"s{need}" for need in needs)))
    return steps


@settings(deadline=None)
@given(steps=runs_of_steps())
def test_boxes_lie_apart_within_the_picture_and_edges_go_forwards(steps: list[StepRecord]) -> None:
    drawn = graph(steps)
    assert sorted(node.step.name for node in drawn.nodes) == sorted(step.name for step in steps)
    places = {node.step.name: node for node in drawn.nodes}
    for node in drawn.nodes:
        assert 0 <= node.x <= drawn.width - drawn.box_width
        assert 0 <= node.y <= drawn.height - drawn.box_height
        for need in node.step.needs:
            assert places[need].x + drawn.box_width <= node.x or places[need].y + drawn.box_height <= node.y
    for one, other in combinations(drawn.nodes, 2):
        apart = abs(one.x - other.x) >= drawn.box_width or abs(one.y - other.y) >= drawn.box_height
        assert apart, (one, other)


def test_a_short_chain_runs_sideways_and_a_long_one_downwards() -> None:
    def chain(length: int) -> list[StepRecord]:
        return [make_step(f"s{index}", (f"s{index - 1}",) if index else ()) for index in range(length)]

    short, long = graph(chain(4)), graph(chain(100))
    assert len({node.y for node in short.nodes}) == 1
    assert len({node.x for node in long.nodes}) == 1
    assert len(short.edges) == 3
    assert long.width < 300


def test_steps_that_are_alike_share_a_frame_and_its_edges() -> None:
    names = [f"shard_{index}" for index in range(98)]
    steps = [make_step("split"), *(make_step(name, ("split",)) for name in names), make_step("merge", tuple(names))]
    drawn = graph(steps)
    assert len(drawn.nodes) == 100
    assert len(drawn.frames) == 1
    assert len(drawn.edges) == 2
    assert drawn.width < 1100


def test_a_graph_with_every_possible_edge_is_drawn() -> None:
    steps = [make_step(f"s{index}", tuple(f"s{need}" for need in range(index))) for index in range(100)]
    assert len(graph(steps).edges) == 99 * 100 / 2


# The confusion matrix


def write_matrix(path: Path, labels: object, matrix: object, kind: str = "confusion_matrix") -> None:
    data = {"class_labels": labels, "matrix": matrix}
    path.write_text(json.dumps({"schema_type": kind, "schema_version": "v1", "data": data}))


def test_the_matrix_is_shown_with_its_totals(tmp_path: Path) -> None:
    write_matrix(tmp_path / "c.json", ["cat", "dog", "owl"], [[8, 2, 0], [1, 9, 0], [0, 0, 0]])
    step = make_step("evaluate", folder=str(tmp_path), artifacts=["model.bin", "c.json"])
    (confusion,) = confusions(step)
    assert [confusion.recall(place) for place in range(3)] == [0.8, 0.9, None]
    assert confusion.precision(0) == 8 / 9
    assert confusion.mistakes() == [("cat", "dog", 2.0), ("dog", "cat", 1.0)]
    text = Page(page(make_run(step), NOW)).text
    assert "17 of 20 right, 85.0 %" in text
    assert "cat taken for dog (2)" in text


Spoiler = Callable[[Path], object]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: None,
        lambda path: path.write_text("{"),
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text('{"schema_type": "confusion_matrix"}'),
        lambda path: path.write_text('{"schema_type": "confusion_matrix", "data": [1]}'),
        lambda path: path.write_text(" " * (LARGEST_FILE + 1)),
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
        lambda path: path.symlink_to(path.name),
        lambda path: write_matrix(path, ["a"], [[1]], "accuracy_table"),
        lambda path: write_matrix(path, [], []),
        lambda path: write_matrix(path, ["a", "b"], [[1, 2]]),
        lambda path: write_matrix(path, ["a", "b"], [[1, 2], [3]]),
        lambda path: write_matrix(path, ["a", "b"], [[1, 2], [3, "4"]]),
        lambda path: write_matrix(path, ["a"], [[math.nan]]),
        lambda path: write_matrix(path, ["a"], [[-1]]),
        lambda path: write_matrix(path, ["a"], [[10**400]]),
        lambda path: write_matrix(path, ["a"], [[True]]),
        lambda path: write_matrix(path, "ab", [[1, 2], [3, 4]]),
        lambda path: write_matrix(path, list(range(LARGEST_MATRIX + 1)), [[1] * 65] * 65),
    ],
)
def test_what_is_no_matrix_is_passed_over(tmp_path: Path, spoil: Spoiler) -> None:
    spoil(tmp_path / "c.json")
    step = make_step("evaluate", folder=str(tmp_path), artifacts=["c.json"])
    assert confusions(step) == []
    assert "Confusion" not in Page(page(make_run(step), NOW)).text


# Writing


def test_a_page_takes_the_place_of_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "run.html"
    target.write_text("old")
    write_page(make_run(make_step("train")), target, NOW)
    assert "Digits" in target.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [target]


def test_where_the_page_cannot_take_its_place_nothing_is_left_of_it(tmp_path: Path) -> None:
    target = tmp_path / "run.html"
    target.mkdir()
    with pytest.raises(OSError, match=re.escape("run.html")):
        write_page(make_run(), target, NOW)
    assert list(tmp_path.iterdir()) == [target]
