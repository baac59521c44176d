"""Check the types of the steps' programs.

usage: python tools/lint_programs.py

A program imports the modules in its folder by their bare names, which recur from folder to folder. Folders whose names
differ are checked together: mypy reads the types of torch and the others once for each group.
"""

import os
import subprocess
import sys
from pathlib import Path

COMPONENTS = Path(__file__).resolve().parents[1] / "components"


def groups() -> list[list[Path]]:
    """Return the programs of the steps in groups in which no name recurs."""
    folders: dict[Path, list[Path]] = {}
    for file in sorted(COMPONENTS.glob("*/*/*.py")):
        if file.parts[len(COMPONENTS.parts)] != "shared":
            folders.setdefault(file.parent, []).append(file)
    found: list[list[Path]] = []
    for files in sorted(folders.values(), key=len, reverse=True):
        names = {file.name for file in files}
        free = next((group for group in found if names.isdisjoint(file.name for file in group)), None)
        if free is None:
            found.append(files)
        else:
            free += files
    return found


def main() -> int:
    failed = False
    for files in groups():
        path = os.pathsep.join(sorted({str(file.parent) for file in files}))
        words = [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, files)]
        failed |= subprocess.run(words, env={**os.environ, "MYPYPATH": path}, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
