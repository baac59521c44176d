"""Check the programs of steps with mypy, in one process: PYTHON install/mypy_programs.py FOLDER...

Each folder is checked by itself, because the names of its modules recur in other folders.
"""

import os
import sys
from pathlib import Path

from mypy import api

failed = False
for folder in map(Path, sys.argv[1:]):
    os.environ["MYPYPATH"] = str(folder)
    report, errors, code = api.run(["--no-error-summary", *map(str, sorted(folder.glob("*.py")))])
    print(report, errors, sep="", end="")
    failed = failed or code != 0
sys.exit(failed)
