"""Stage argv[1] and print the path. Each file copied is one line of argv[2]; the copier tells pipe argv[3], hangs."""

import shutil
import sys
from pathlib import Path

from allranks.runtime.data.staging import stage

copy = shutil.copy2


def told(source: Path, target: Path) -> Path:
    copy(source, target)
    with Path(sys.argv[2]).open("a") as log:
        log.write(f"{source.name}\n")
    if len(sys.argv) > 3:
        Path(sys.argv[3]).write_text("copying")
        sys.stdin.read()
    return target


shutil.copy2 = told  # type: ignore[assignment]
print(stage(sys.argv[1]))
