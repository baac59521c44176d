"""No test waits without a bound: one whose process or thread does not end fails, and says so."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bounded

TESTS = Path(__file__).parent


def unbounded(source: str) -> Iterator[str]:
    """Yield the calls of a file that may wait for ever, or begin what waits for ever when a block ends."""
    if "Popen(" not in source and ".join()" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in ("subprocess.Popen", "Popen"):
            yield f"line {node.lineno}: {called}, not bounded.Popen"
        elif called.endswith(".join") and not node.args and not node.keywords:
            yield f"line {node.lineno}: {called}(), not bounded.join({called.removesuffix('.join')})"


def test_every_wait_has_a_bound() -> None:
    # The programs of faults are what ranks run, and the engine ends.
    found = [*TESTS.rglob("*.py"), *TESTS.parent.glob("packages/*/tests/**/*.py")]
    files = [file for file in found if file.name != "bounded.py" and file.parent.name != "programs"]
    assert len(files) > 100
    assert {str(file): problems for file in files if (problems := list(unbounded(file.read_text("utf-8"))))} == {}


@pytest.mark.parametrize(
    "line", ["with subprocess.Popen(words) as process: pass", "thread.join()", "a = [Popen(words), 1]"]
)
def test_it_is_found_in(line: str) -> None:
    assert len(list(unbounded(line))) == 1
    assert list(unbounded("' '.join(words)\nthread.join(5)\nbounded.Popen(words)")) == []


UNENDING = [sys.executable, "-c", "import time\nwhile True:\n  try: time.sleep(100)\n  except BaseException: pass"]


def test_a_process_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "BOUND", 1.0)
    with pytest.raises(subprocess.TimeoutExpired), bounded.Popen(UNENDING) as late:
        pass
    with pytest.raises(ZeroDivisionError), bounded.Popen(UNENDING) as failed:
        raise ZeroDivisionError
    assert (late.returncode, failed.returncode) == (-9, -9)
