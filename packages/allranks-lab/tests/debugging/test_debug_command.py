"""`allranks debug` as a user runs it: it says how to attach, and Ctrl-C ends everything."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from allranks_command import PATIENCE, started, write, write_job


@pytest.mark.recipe
def test_ctrl_c_ends_the_ranks_the_debugger_and_the_forwarding(tmp_path: Path, rack_works: bool) -> None:
    if not rack_works:
        pytest.skip("debugpy needs instances with networks of their own")
    write(tmp_path, "src/train.py", "import time\nwhile True:\n    time.sleep(1)\n")
    layout = {"distribution": {"type": "pytorch"}, "resources": {"instance_count": 2}}
    write_job(tmp_path, "python train.py", code="./src", **layout)
    with started("debug", "job.yml", "--rank", "1", folder=tmp_path) as process:
        assert process.stdout is not None
        shown = [next(process.stdout)]
        while "rank 1 waits for a debugger on 127.0.0.1" not in shown[-1]:
            shown.append(next(process.stdout))
        assert '"name": "job, rank 1",' in "".join(shown)
        below = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert psutil.wait_procs(below, timeout=PATIENCE)[1] == []
