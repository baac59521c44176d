"""The Python in the README runs as it stands; its pipeline is run by the tests of the wheel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
_SNIPPETS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

SNIPPETS = [snippet for snippet in _SNIPPETS if "@pipeline" not in snippet]


def test_there_is_python_in_the_readme() -> None:
    assert SNIPPETS


@pytest.mark.slow
@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_it_runs_on_one_process_without_a_launcher(snippet: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(snippet)
    report = tmp_path / "report.jsonl"
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1", "ALLRANKS_REPORT": str(report)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("loss") == 5 * snippet.count("print(")
    assert "Warning" not in done.stderr
    events = [json.loads(line) for line in report.read_text().splitlines() if line]
    steps = [event for event in events if event["event"] == "progress" and event["metrics"]]
    assert steps
    assert len(steps) == steps[-1]["step"] == steps[-1]["total"]
