"""The cost of creating the request that submits a pipeline, from the command line to the body on stdout.

submit --dry-run
    Wall time of `allranks submit FILE --dry-run`, which also checks the plan and creates the exact body that is sent,
    including the ids of components. Peer: azure-ai-ml in its own process, which imports it and calls the same function,
    `_validate()` and `_to_rest_object()`, which does not change the components. Both compile the same number of steps,
    in turn.
"""

import sys
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import medians, seconds

ROOT = Path(__file__).resolve().parents[1]
PIPELINES = ("image_classification", "language_model")
TIMES = 7

PEER = """
import importlib.util, os, sys
os.environ["AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED"] = "true"
path, name = sys.argv[1:]
sys.path.insert(0, os.path.dirname(path))
spec = importlib.util.spec_from_file_location(name, path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
job = getattr(module, name)()
assert job._validate().passed
job._to_rest_object()
"""


def main() -> None:
    figures = []
    for name in PIPELINES:
        path = ROOT / "pipelines" / f"{name}.py"
        ours, peer = medians(
            TIMES,
            lambda path=path: seconds([sys.executable, "-m", "allranks.cli.main", "submit", str(path), "--dry-run"]),
            lambda path=path, name=name: seconds([sys.executable, "-c", PEER, str(path), name]),
        )
        figures.append(
            Figure(f"submit --dry-run of {name}, s (peer: azure-ai-ml compiles it)", ours, peer, goal=1.1, of="ratio")
        )
    finish("What submitting costs before anything is sent", figures)


if __name__ == "__main__":
    main()
