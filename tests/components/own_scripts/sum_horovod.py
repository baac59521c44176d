"""A script that knows Horovod alone: every rank adds itself to the sum and writes it down."""

import os
import sys
from pathlib import Path

import horovod.torch as hvd
import torch

hvd.init()
total = hvd.allreduce(torch.tensor([hvd.rank() + 1]), op=hvd.Sum)
results = Path(os.environ["AZURE_ML_OUTPUT_results"])  # noqa: SIM112 - as Azure ML spells it
results.mkdir(parents=True, exist_ok=True)
place = f"{hvd.rank()} of {hvd.size()}, local {hvd.local_rank()}: {int(total)}"
(results / f"{hvd.rank()}.txt").write_text(" ".join([place, *sys.argv[1:]]))
hvd.shutdown()
