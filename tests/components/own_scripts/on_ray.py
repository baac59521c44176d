"""A script for Ray: tasks square numbers."""

import os
from pathlib import Path

import ray

ray.init()
square = ray.remote(lambda number: number * number)
results = Path(os.environ["AZURE_ML_OUTPUT_results"])  # noqa: SIM112 - as Azure ML spells it
results.write_text(str(ray.get([square.remote(number) for number in range(4)])))
