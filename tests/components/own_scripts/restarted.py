"""Fails in its first attempt; torchrun starts all ranks again."""

import os
import runpy
import sys
from pathlib import Path

if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit("failed once")
runpy.run_path(str(Path(__file__).with_name("sum_ranks.py")))
