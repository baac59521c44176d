"""Run a launch in a layout on a kind of instances with the local engine, and check the result."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

from allranks.contract.layout import Layout
from allranks.history.records import RankRecord, RunRecord, Status
from allranks.history.workspace import Workspace
from allranks.local.boot import SOURCE
from allranks.local.doctor.launches import Launch
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan import digest
from allranks.plan.environment import Environment
from allranks.plan.graph import Code, Graph, Plan, Step

RANKS = Path(__file__).resolve().parent / "ranks"
TIMEOUT = 240.0
"""Seconds after which a launch counts as hanging."""


def run_trial(launch: Launch, layout: Layout, kind: str, workspace: Workspace, project: Path) -> str:
    """Return what is wrong with the launch. Return an empty text if all ranks are distinct, world size and local ranks
    are right, the stack's own all-reduce is correct, and every rank ended with 0.

    kind:    of the instances: auto, rack or loopback
    project: the folder with the virtual environments of stacks that have their own
    """
    step = Step(
        "ranks",
        launch.command_for(layout),
        code=Code(str(RANKS), digest.of_path(RANKS)),
        environment=Environment(launch.stacks[0].environment),
        environment_variables={"PYTHONPATH": str(_import_folder(workspace))},
        distribution=launch.distribution(layout),
        instance_count=layout.instance_count,
        timeout=TIMEOUT,
        deterministic=False,
    )
    plan = Plan("stacks", Graph((step,)), source=str(project / "stacks"))
    record = run(plan, workspace, Options(instances=kind, track=False))
    return _failure(record, layout, launch.reporting_ranks(layout))


def _import_folder(workspace: Workspace) -> Path:
    """Return a folder from which only allranks can be imported: next to an installed allranks are other packages, and
    the stack has its own versions of them."""
    folder = workspace.root / "imports"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "allranks").symlink_to(Path(SOURCE, "allranks"))
    return folder


def _failure(record: RunRecord, layout: Layout, world_size: int) -> str:
    (step,) = record.steps
    if record.status is not Status.COMPLETED:
        tail = "\n".join(step.verdict.tail) if step.verdict else ""
        return f"{step.verdict.reason if step.verdict else record.status}\n{tail}"
    places = sorted(_places(step.ranks), key=lambda place: int(place["rank"]))
    total = sum(range(1, world_size + 1))
    expected = [
        {"rank": rank, "world_size": world_size, "local_rank": layout.local_rank(rank), "total": total}
        for rank in range(world_size)
    ]
    return "" if places == expected else f"found {places}, expected {expected}"


def _places(ranks: list[RankRecord]) -> list[dict[str, float]]:
    return [
        json.loads(text)
        for rank in ranks
        for text in re.findall(r"place (\{.*?\})", Path(rank.log).read_text(encoding="utf-8", errors="replace"))
    ]
