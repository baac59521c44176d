"""The page of components. tests/test_wheel.py runs its pipeline."""

import subprocess
import sys
from pathlib import Path

import pytest

from documents import FENCE

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.slow
def test_the_layout_has_what_the_page_says() -> None:
    page = (DOCS / "how-to/components.md").read_text(encoding="utf-8")
    code = next(code for _, code in FENCE.findall(page) if "size=" in code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'instance_count': 2" in done.stdout.replace('"', "'")
    assert done.stdout.endswith(" 8 {'ALLRANKS_SIZE': 'Standard_ND96asr_v4'}\n")
