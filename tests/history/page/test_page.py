"""The page of a run."""

import base64
import hashlib
import json
import math
import re
from pathlib import Path

import pytest

from allranks.history.page.page import page
from allranks.history.records import OutputRecord, Point, RankRecord, RunRecord, Status, Verdict
from run_records import BEGIN, NOW, make_curve, make_ranks, make_run, make_step, write_matrix
from shown_page import Page

EVIL = """<script>alert(1)</script>"'><img src=x onerror=alert(1)> ${{x}} {{ 7 * 7 }}"""


def test_a_completed_run_shows_what_a_user_asks_of_it() -> None:
    train = make_step("train", ("prepare",), distribution="pytorch", instance_count=2, process_count_per_instance=2)
    train.ranks = make_ranks(2, 2)
    train.metrics = {"train_loss": make_curve(2.0, 1.0, 0.5), "validation_loss": make_curve(2.1, 1.2)}
    train.inputs = {"epochs": "5"}
    train.outputs = [
        OutputRecord("model", "uri_folder", "/runs/calm_otter/train/model"),
        OutputRecord("score", "number", "/x", "0.975"),
    ]
    evaluate = make_step("evaluate", ("train",), metrics={"test_accuracy": make_curve(0.9778)}, notes=["forgiven"])
    run = make_run(make_step("prepare", reused_from="brave_heron"), train, evaluate, outputs={"final": "/data/final"})
    run.folder = "/runs/calm_otter"
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
        "/data/final",
    ):
        assert said in shown.text, said
    assert ("a", {"href": "train/model"}) in shown.tags
    assert ("a", {"href": "../brave_heron/run.html"}) in shown.tags
    assert ("a", {"class": "ref", "href": "#step-train"}) in shown.tags


def test_a_failed_run_shows_who_why_the_log_and_what_next() -> None:
    verdict = Verdict(
        "train", "ValueError: bad", 3, 1, 17, None, "/runs/std_log_process_3.txt", ("step 9", "boom"), "TB"
    )
    run = make_run(make_step("train", status=Status.FAILED, verdict=verdict), status=Status.FAILED)
    text = Page(page(run, NOW)).text
    for said in (
        "train failed: rank 3 on instance 1: ValueError: bad",
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
    hrefs = [attrs["href"] or "" for _, attrs in shown.tags if "href" in attrs]
    assert hrefs
    assert all(re.fullmatch(r"(#|\.\./)?[\w.%~/-]*", href) for href in hrefs)
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


def test_a_hundred_steps_of_64_ranks_and_long_curves_stay_a_page_of_a_few_megabytes() -> None:
    steps = [make_step("first")]
    for index in range(99):
        steps.append(make_step(f"step_{index}", ("first",), ranks=make_ranks(8, 8)))
    steps[1].metrics = {"train_loss": make_curve(*(1 / (1 + step) for step in range(10_000)))}
    assert len(page(make_run(*steps), NOW).encode()) < 8_000_000


def test_a_step_shows_what_its_ranks_have_used() -> None:
    step = make_step("train", ranks=make_ranks(1, 2))
    for rank in step.ranks:
        rank.cpu_seconds, rank.peak_memory = 0.3 * (rank.rank + 1), 12_000_000
    known = "Resource usage mean CPU per rank 10% to 20% · CPU time 0.9 s · peak memory per rank 12.0 MB"
    assert known in Page(page(make_run(step), NOW)).text
    step.reused_from = "brave_heron"
    assert "Resource usage" not in page(make_run(step, make_step("old", ranks=make_ranks(1, 1))), NOW)
