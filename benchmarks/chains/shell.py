"""Start `true` from a shell: python shell.py SHAPE COUNT FOLDER.

A chain starts one after another, a fan as many at once as this machine has cores. Print the seconds of all of them, and
"shell".
"""

import os
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

COMMAND = ("/bin/sh", "-c", "true")


def main(shape: str, count: int, folder: Path) -> None:
    folder.mkdir()
    started = time.perf_counter()
    at_once = (os.cpu_count() or 1) if shape == "fan" else 1
    running: deque[subprocess.Popen[bytes]] = deque()
    for _ in range(count):
        if len(running) == at_once:
            running.popleft().wait()
        running.append(subprocess.Popen(COMMAND, cwd=folder))
    while running:
        running.popleft().wait()
    print(time.perf_counter() - started, "shell")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
