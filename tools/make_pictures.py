"""Makes the pictures of the documentation: docs/pictures.

PYTHONPATH=tests python tools/make_pictures.py

It runs `make demo`, launches a script of which a rank fails, opens the project of `allranks init` in the studio, and
draws the terminal (SVG) and pages (PNG, by Chromium).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cattrs import Converter
from terminal_picture import WIDTH, output_picture, run_picture

from allranks.history.records import RunRecord
from chromium import PROGRAM, Browser, chromium
from user_input import UserInput

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
ALLRANKS = Path(sys.executable).with_name("allranks")

DEMO = "pipelines/image_classification.py"
FAILING = """\
import torch
from torch import distributed

distributed.init_process_group("gloo")
rank = distributed.get_rank()
for step in range(20):
    loss = torch.tensor(1.0 / (step + 1) if rank != 2 or step < 12 else float("nan"))
    if loss.isnan():
        raise ValueError(f"loss is NaN in step {step}")
    distributed.all_reduce(loss)
"""


def main() -> str | None:
    """Make the pictures. Return what this machine lacks."""
    if PROGRAM is None:
        return "Chromium, which draws the pages, is not on this machine: apt install chromium"
    if not (shutil.which("fc-list") and subprocess.run("fc-list", capture_output=True, check=True).stdout):
        return "There is no font on this machine for the pages: apt install fontconfig fonts-dejavu-core"
    with tempfile.TemporaryDirectory(prefix="pictures-") as name, chromium(Path(name, "profile")) as browser:
        folder = Path(name, "project")
        folder.mkdir()
        draw_run(folder, browser)
        draw_failure(folder)
        draw_palette(folder, browser)
        draw_studio(folder, browser)
    return None


def draw_run(folder: Path, browser: Browser) -> None:
    """The terminal and the page of a run."""
    workspace = ("--folder", folder / ".allranks")
    called(ROOT, "run", DEMO, *workspace)
    run = Converter().structure(
        json.loads(without(called(ROOT, "show", "latest", "--json", *workspace), folder)), RunRecord
    )
    (PICTURES / "run.svg").write_text(run_picture(run), encoding="utf-8")
    page = folder / run.page
    page.write_text(without(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    photograph(browser, page.as_uri(), "run-page.png", 1240)


def draw_failure(folder: Path) -> None:
    """The verdict on a failed run."""
    (folder / "code").mkdir()
    (folder / "code/train.py").write_text(FAILING, encoding="utf-8")
    called(folder, "launch", "-j", "2x2", "code/train.py", code=1)
    verdict = without(called(folder, "why", code=None, FORCE_COLOR="1"), folder)
    (PICTURES / "verdict.svg").write_text(output_picture("allranks why", verdict), encoding="utf-8")


def draw_palette(folder: Path, browser: Browser) -> None:
    """The page of the library's components."""
    called(folder, "components", "--library", "--page", "palette.html")
    photograph(browser, f"{(folder / 'palette.html').as_uri()}#allranks_train_image_classifier", "palette.png", 720)


def draw_studio(folder: Path, browser: Browser) -> None:
    """The studio: two runs beside each other, and a pipeline in the designer."""
    called(folder, "init", "spirals")
    project = folder / "spirals"
    for rate in ("0.01", "0.001"):
        called(project, "run", "pipelines/two_spirals.py", "--set", f"learning_rate={rate}")
    runs = json.loads(called(project, "runs", "--json"))
    command = [ALLRANKS, "studio", "--no-browser", project]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as studio:
        assert studio.stdout is not None
        address = studio.stdout.readline().split()[-1]
        try:
            tab = browser.open(address, 1280, 800)
            views = {
                "compare": (
                    f"compare?runs={runs[0]['id']},{runs[1]['id']}",
                    "document.querySelector('canvas') && document.querySelector('table')",
                ),
                "designer": ("designer?path=pipelines/two_spirals.py", "document.querySelector('.card')"),
            }
            for name, (path, shown) in views.items():
                tab.call("Page.navigate", url=address.partition("?")[0] + path)
                tab.wait_for(shown)
                if name == "designer":
                    tab.wait_for("document.querySelectorAll('.react-flow__node').length === 3")
                    UserInput(tab).click("[data-id='train'] header b")
                    tab.wait_for("document.querySelector('.picture')")
                tab.screenshot(PICTURES / f"studio-{name}.png", whole=False)
        finally:
            studio.terminate()


def without(text: str, folder: Path) -> str:
    """Return a text whose paths are the project's, not this machine's."""
    return text.replace(f"{folder}/", "").replace(f"{ROOT}/", "")


def called(folder: Path, *words: str | Path, code: int | None = 0, **variables: str) -> str:
    """Return what the command printed. code: the expected exit code; None: any"""
    environment = {**os.environ, "COLUMNS": str(WIDTH), **variables}
    done = subprocess.run(
        [ALLRANKS, *words], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if code is not None and done.returncode != code:
        sys.exit(f"allranks {words[0]} ended with {done.returncode} instead of {code}")
    return done.stdout


def photograph(browser: Browser, address: str, picture: str, height: int) -> None:
    """Save a picture of what is in sight of a page."""
    browser.open(address, 1280, height).screenshot(PICTURES / picture, whole=False)


if __name__ == "__main__":
    sys.exit(main())
