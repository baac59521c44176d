"""A few of the kills of soak/killed_saves.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SOAK = Path(__file__).parent / "soak/killed_saves.py"


def test_the_newest_state_is_readable_whenever_a_save_is_killed(start_environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, str(SOAK), "--kills", "6"], env=start_environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended
    assert "every newest state was readable" in ended.stdout
