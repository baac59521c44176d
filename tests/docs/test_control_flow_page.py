"""The example of `allranks.after` in docs/how-to/control-flow.md runs in its order."""

import re
from pathlib import Path

import pytest

from allranks_command import called
from documents import FENCE

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/control-flow.md"


def test_the_second_step_finds_what_the_first_one_has_written(tmp_path: Path) -> None:
    ((_, code),) = [block for block in FENCE.findall(PAGE.read_text(encoding="utf-8")) if block[0] == "python"]
    (tmp_path / "ordered.py").write_text(code)
    options = ("--set", f"database={tmp_path}", "--no-track", "--instances", "loopback")
    done = called("run", "ordered.py", *options, folder=tmp_path)
    assert done.code == 0, done.out + done.err
    assert re.search("Completed|completed", done.out)
    without = code.replace("    allranks.after(evaluate, create)\n", "")
    (tmp_path / "ordered.py").write_text(without)
    (tmp_path / "table").unlink()
    assert called("run", "ordered.py", *options, "--force-rerun", folder=tmp_path).code == 1
