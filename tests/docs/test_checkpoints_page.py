"""The first Python of docs/checkpoints.md runs as it stands, and resumes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/checkpoints.md"

pytestmark = pytest.mark.slow


def test_it_saves_and_resumes(tmp_path: Path) -> None:
    snippet = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "train.py").write_text(snippet)

    def run() -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, "train.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    first, again = run(), run()
    assert (first.returncode, first.stdout) == (0, "step 100\n"), first
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step_000000080", "step_000000100"]
    assert again.returncode == 0, again
    assert "resuming from step 100" in again.stderr
