"""Launches by allranks."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from allranks.contract.layout import Layout
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.history.records import Status
from allranks.local import engine
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
from launches.launch import Launcher


def by_engine(workspace: Workspace, kind: str, distribution: Callable[[int], PyTorch | Mpi] = PyTorch) -> Launcher:
    """Return a launcher that calls the engine's run(plan), without MLflow, as torchrun has none.

    The process has already imported the engine, like a notebook or the command.
    """
    return partial(_run, workspace, kind, distribution)


def _run(
    workspace: Workspace,
    kind: str,
    distribution: Callable[[int], PyTorch | Mpi],
    code: Path,
    file: str,
    layout: Layout,
    folder: Path,
) -> float:
    step = Step(
        "train",
        f"python {code / file} {folder}",
        distribution=distribution(layout.process_count_per_instance),
        instance_count=layout.instance_count,
        environment_variables={"OMP_NUM_THREADS": "1"},
    )
    options = engine.Options(instances=kind, track=False, force_rerun=True)
    started = time.time()
    record = engine.run(Plan("launch", Graph((step,))), workspace, options)
    if record.status is not Status.COMPLETED:
        raise RuntimeError(f"the run ended {record.status}: {record.verdict}")
    return started
