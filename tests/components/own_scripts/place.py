"""A script that imports no library: every rank writes down its place."""

import json
import os
import sys
from pathlib import Path

environ = os.environ
if "TF_CONFIG" in environ:
    config = json.loads(environ["TF_CONFIG"])
    rank, world = config["task"]["index"], len(config["cluster"]["worker"])
else:
    rank, world = int(environ["RANK"]), int(environ["WORLD_SIZE"])
results = Path(environ["AZURE_ML_OUTPUT_results"])
results.mkdir(parents=True, exist_ok=True)
(results / f"{rank}.txt").write_text(" ".join([f"{rank} of {world}", *sys.argv[1:]]))
