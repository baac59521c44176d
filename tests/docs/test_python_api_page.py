"""The examples in docs/how-to/python-api.md run, in their order, in one process."""

import subprocess
import sys
from pathlib import Path

import pytest

from allranks.project.files import create, template
from allranks_command import PATIENCE, environment
from documents import FENCE

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/python-api.md"


@pytest.mark.recipe
def test_the_examples(tmp_path: Path) -> None:
    create(tmp_path, template())
    blocks = [code for language, code in FENCE.findall(PAGE.read_text(encoding="utf-8")) if language == "python"]
    assert len(blocks) == 9
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Completed 0.")
    for printed in (
        "\nTrue\n",
        "epoch 2 of 2",
        "the pipeline has no input epoch",
        "best learning rate: 0.0",
        "Canceled",
    ):
        assert printed in done.stdout, done.stdout
