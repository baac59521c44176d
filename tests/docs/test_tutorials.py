"""The tutorials and docs/how-to/migrate-from-v1.md, executed from the first block to the last one."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from allranks_command import PATIENCE, Ended, allranks, called, environment
from documents import FENCE

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[2] / "docs"
FASTER = dict.fromkeys(("run", "launch", "resume"), ("--no-track",))
"""Options that are added, except where models are registered: MLflow takes seconds in each training."""
NEEDS = {"how-to/migrate-from-v1.md": "allranks_migrate", "tutorials/from-azure-ml.md": "allranks_client"}
NUMBER = re.compile(r"\b[0-9a-f]{8}\b|\d+(?:\.\d+)?")
"""Ids, times and values, which differ from run to run."""


# Each of its blocks depends on the ones before it.
@pytest.mark.parametrize(
    ("page", "blocks"),
    [
        pytest.param("tutorials/first-pipeline.md", {"console": 9, "diff": 4, "file": 3}, marks=pytest.mark.recipe),
        ("tutorials/own-script.md", {"console": 6, "diff": 0, "file": 1}),
        pytest.param("tutorials/from-azure-ml.md", {"console": 5, "diff": 0, "file": 5}, marks=pytest.mark.recipe),
        pytest.param("tutorials/recurring-training.md", {"console": 4, "diff": 1, "file": 0}, marks=pytest.mark.recipe),
        ("tutorials/find-a-failure.md", {"console": 5, "diff": 2, "file": 3}),
        ("how-to/migrate-from-v1.md", {"console": 1, "diff": 0, "file": 2}),
    ],
)
def test_the_page(page: str, blocks: dict[str, int], tmp_path: Path) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    text = (DOCS / page).read_text(encoding="utf-8")
    folder, before, counts = tmp_path, 0, dict.fromkeys(("console", "diff", "file"), 0)
    file = ""
    for block in FENCE.finditer(text):
        named = re.findall(r"`([\w./]+\.(?:py|ya?ml|txt))`", text[before : block.start()])
        file, before = (named or [file])[-1], block.end()
        language, content = block.groups()
        kind = language if language in counts else "file"
        counts[kind] += 1
        if kind == "console":
            folder = execute(content, folder)
        elif kind == "diff":
            change(folder / file, content)
        else:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(content, encoding="utf-8")
    assert counts == blocks


def execute(block: str, folder: Path) -> Path:
    """Execute the commands of a block, and compare what they print. Return the folder in which the next ones run."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *expected = part.rstrip().splitlines()
        program, *words = shlex.split(command)
        if program == "cd":
            folder /= words[0]
            continue
        done = run(program, words, folder)
        printed = done.out + done.err
        assert done.code == int(any(line.startswith("✗") for line in expected)), f"{command}\n{printed}"
        assert "Traceback" not in done.err
        missing = [line for line in expected if not re.search(pattern(line), printed)]
        assert missing == [], f"{command}\n{printed}"
    return folder


def run(program: str, words: list[str], folder: Path) -> Ended:
    if program == "allranks":
        command, *rest = words
        slower = {"--dry-run", "--emit", "pipelines/recurring_training.py"}
        faster = () if slower & {*words} else FASTER.get(command, ())
        # Another process for a user's script: azure-ai-ml's log keeps the standard error that it found first.
        start = allranks if "--as-azure" in words else called
        return start(command, *faster, *rest, folder=folder, COLUMNS="120")
    assert program == "python"
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def pattern(line: str) -> str:
    """Return an expression for a line of the page, in which numbers, times and ids may be others."""
    words = [".*".join(map(re.escape, NUMBER.split(word))) for word in line.split()]
    return r"\s+".join(words)


def change(file: Path, block: str) -> None:
    """Change a file as a diff without line numbers says."""
    lines = block.splitlines(keepends=True)
    before, after = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    file.write_text(text.replace(before, after), encoding="utf-8")
