"""Fails in rank 1's first attempt, once the ranks know each other; torchrun starts all ranks again."""

import os
import runpy
import sys
from pathlib import Path

from torch import distributed

if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    distributed.init_process_group("gloo")
    sys.exit("failed once")
runpy.run_path(str(Path(__file__).with_name("sum_ranks.py")))
