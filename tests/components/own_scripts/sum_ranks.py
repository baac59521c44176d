"""A script that knows nothing of allranks: every rank adds itself to the sum and writes it down."""

import os
import sys
from pathlib import Path

import torch
from torch import distributed

distributed.init_process_group("gloo")
rank = distributed.get_rank()
total = torch.tensor([rank + 1])
distributed.all_reduce(total)
results = Path(os.environ["AZURE_ML_OUTPUT_results"])  # noqa: SIM112 - as Azure ML spells it
results.mkdir(parents=True, exist_ok=True)
place = f"{rank} of {distributed.get_world_size()}, local {os.environ['LOCAL_RANK']}: {int(total)}"
(results / f"{rank}.txt").write_text(" ".join([place, *sys.argv[1:]]))
distributed.destroy_process_group()
