"""The mpirun with which the engine starts ranks, and the mark of tests that need one."""

import shutil
import sys
from pathlib import Path

import pytest

MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:/usr/bin")

needs_mpirun = pytest.mark.skipif(MPIRUN is None, reason="no mpirun")
