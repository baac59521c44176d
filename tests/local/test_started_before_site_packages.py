"""What each run or rank waits for starts without site-packages, and imports little."""

import subprocess
import sys

import pytest

from allranks.local.boot import SOURCE


@pytest.mark.parametrize("module", ["supervisor", "launchers.rsh", "launchers.mpi_rank"])
def test_what_each_run_or_rank_waits_for_imports_little(module: str) -> None:
    show = f"import sys; sys.path.append({SOURCE!r}); import allranks.local.{module}; print(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", show]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert f"allranks.local.{module}" in imported
    assert not {"asyncio", "dataclasses", "inspect", "pathlib", "subprocess", "urllib"} & set(imported)
