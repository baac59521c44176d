"""The initial records of the nodes of a graph."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from allranks.contract.distributions import processes_per_instance
from allranks.history.records import StepRecord
from allranks.plan.graph import Graph, Node, Pipeline, Step

_PARTS = re.compile(r"[.\[\]]+")


def node_record(node: Node, path: str, needs: Iterable[str], folder: Path) -> StepRecord:
    """Return the record of a node that has not started.

    path:   the node's path in its run, such as ``loop[2].train``
    needs:  the paths of the nodes that must end first
    folder: the run's folder
    """
    step = node if isinstance(node, Step) else None
    return StepRecord(
        name=path,
        display_name=node.display_name or node.name,
        component=node.component,
        distribution=step.distribution.type if step else "none",
        instance_count=step.instance_count if step else 1,
        process_count_per_instance=processes_per_instance(step.distribution) if step else 1,
        needs=tuple(needs),
        folder=str(node_folder(folder, path)),
        kind=node.kind,
    )


def graph_records(graph: Graph, folder: Path, path: str = "") -> Iterator[StepRecord]:
    """Yield the records of a graph's nodes and of the pipeline components in it. Records of loop iterations are created
    when they start.

    folder: the run's folder
    path:   the path of the node that contains the graph, with a trailing dot
    """
    for node in graph.nodes:
        needs = (f"{path}{name}" for name in graph.needs(node) if name in graph.by_name)
        yield node_record(node, f"{path}{node.name}", needs, folder)
        if isinstance(node, Pipeline):
            yield from graph_records(node.graph, folder, f"{path}{node.name}.")


def iteration_record(path: str, label: str, folder: Path) -> StepRecord:
    """Return the record of one iteration of a loop. path: such as ``loop[2]``"""
    return StepRecord(path, label, "", "none", 1, 1, folder=str(node_folder(folder, path)), kind="iteration")


def node_folder(run_folder: Path, path: str) -> Path:
    """Return the folder of a node: ``loop[2].train`` is loop/2/train, without characters that a shell expands."""
    return run_folder.joinpath(*filter(None, _PARTS.split(path)))


def job_name(run: str, path: str) -> str:
    """Return the name of a step's job: ``<run>_train``, ``<run>_loop.2.train``."""
    return f"{run}_{'.'.join(filter(None, _PARTS.split(path)))}"
