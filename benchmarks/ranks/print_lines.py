"""Print BYTES of lines of 100 bytes: python print_lines.py BYTES FOLDER. Write the time of the first line and the time
after the last one to a file in FOLDER that is named as the rank."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

LINE = "step 00001 loss 0.123456 ".ljust(99, ".")


def main(size: int, folder: Path) -> None:
    began = time.time()
    for _ in range(size // (len(LINE) + 1)):
        print(LINE)
    sys.stdout.flush()
    (folder / os.environ["RANK"]).write_text(f"{began} {time.time()}", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
