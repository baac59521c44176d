"""The pictures of the documentation, and what their program says where it lacks something."""

import re
from pathlib import Path

import make_pictures
import pytest
import terminal_picture
from rich.text import Text

from run_records import BEGIN, make_curve, make_run, make_step

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"


@pytest.mark.parametrize("picture", sorted(PICTURES.iterdir()), ids=lambda path: path.name)
def test_a_picture_is_small_and_names_no_machine(picture: Path) -> None:
    content = picture.read_bytes()
    assert len(content) < (150_000 if picture.suffix == ".svg" else 200_000)
    assert [name for name in (b"/home/", b"/root/", b"/tmp/", b"/work/", b'href="http') if name in content] == []


def test_screens_follow_each_other_in_one_svg() -> None:
    svg = terminal_picture.picture([["$ run"], ["$ run", Text("done <1>", style="green")]])
    first, last = re.findall(r'<g class="screen.*?</g>', svg)
    assert ("last" in first, "done" in first, "animation-delay:0s" in first) == (False, False, True)
    assert ("last" in last, "done &lt;1&gt;" in last, "animation-delay:0.6s" in last) == (True, True, True)
    assert set(re.findall(r'y="([\d.]+)"', first)) < set(re.findall(r'y="([\d.]+)"', last))


def test_a_run_grows_until_its_end() -> None:
    step = make_step("train", metrics={"loss": make_curve(1.0, 0.5)})
    step.started, step.ended = BEGIN + 10, BEGIN + 20
    run = make_run(step)
    assert [terminal_picture.at(run, BEGIN + each).steps[0].status for each in (5, 15, 25)] == [
        "NotStarted",
        "Running",
        "Completed",
    ]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (None, "Chromium, which draws the pages, is not on this machine: apt install chromium"),
        ("chromium", "There is no font on this machine for the pages: apt install fontconfig fonts-dejavu-core"),
    ],
)
def test_what_is_missing_is_said_in_one_message(
    program: str | None, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fc-list").write_text("#!/bin/sh\n")
    (tmp_path / "fc-list").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(make_pictures, "PROGRAM", program)
    assert make_pictures.main() == said
