"""Read how many processes v1 starts, and where: its counts are totals, those of azure-ai-ml are per instance."""

from __future__ import annotations

from typing import Any

from allranks.migrate.context import UNKNOWN, Context, of, whole
from allranks.migrate.jobs import Layout
from allranks.migrate.operations import Made, Unknown

_TYPES = {"mpi": "mpi", "openmpi": "mpi", "intelmpi": "mpi", "nccl": "pytorch", "gloo": "pytorch"}
"""The distribution for a communicator, or for a backend of an estimator."""

_FIX = "set distribution and resources.instance_count in the component"


def layout(made: Made, configuration: Any, context: Context) -> Layout:
    """Return the layout of a job.

    configuration: the RunConfiguration of the job, if it has one
    """
    config = made.get("distributed_job_config", default=made.get("distributed_training"))
    names = ("node_count", "communicator", "framework")
    settings = {name: made.get(f"run_config.{name}", default=of(configuration, name)) for name in names}
    nodes = whole(made.get("node_count", default=settings["node_count"]), 1)
    if isinstance(config, Unknown):
        context.report(made.line, f"distributed_job_config {config.text}", UNKNOWN, _FIX)
        return Layout({}, nodes, nodes)
    if isinstance(config, Made):
        return _configured(config, made, nodes, context)
    kind = str(made.get("distributed_backend") or settings["communicator"] or "").lower()
    processes = made.get("process_count_per_node", default=of(configuration, "mpi.process_count_per_node"))
    if kind in ("parameterserver", "ps") or (not kind and str(settings["framework"]).lower() == "tensorflow"):
        return Layout({"type": "tensorflow", "worker_count": nodes}, nodes, nodes)
    if made.kind == "MpiStep" or kind in _TYPES or nodes > 1:
        return _per_instance(_TYPES.get(kind, "mpi"), processes, nodes, made, context)
    return Layout({}, nodes, nodes)


def _configured(config: Made, made: Made, nodes: int, context: Context) -> Layout:
    """Return the distribution of MpiConfiguration, PyTorchConfiguration or TensorflowConfiguration."""
    for name in ("node_count", "process_count", "worker_count"):
        if isinstance(value := config.get(name), Unknown):
            context.report(config.line, f"{config.kind}({name}={value.text})", UNKNOWN, _FIX)
    kind = config.kind.lower().removesuffix("configuration")
    if kind in ("tensorflow", "parameterserver"):
        workers, servers = whole(config.get("worker_count", 0), 1), whole(config.get("parameter_server_count", 1), 0)
        if not servers:
            return Layout({"type": "tensorflow", "worker_count": workers}, workers, workers)
        fix = "check that the cluster has enough instances, or set resources.instance_count to their sum"
        why = "v1 starts each parameter server on a node of its own, azure-ai-ml beside a worker"
        context.report(config.line, f"parameter_server_count={servers}", why, fix)
        counts = {"worker_count": workers, "parameter_server_count": servers}
        return Layout({"type": "tensorflow", **counts}, max(workers, servers), workers + servers)
    nodes = whole(config.get("node_count", 2 if kind == "pytorch" else 1), nodes)
    if kind != "pytorch":
        processes = config.get("process_count_per_node", 0, made.get("process_count_per_node"))
        return _per_instance(_TYPES.get(kind, "mpi"), processes, nodes, config, context)
    total = whole(config.get("process_count", 1), nodes)
    if nodes < 1 or total < 1 or total % nodes:
        fix = "choose process_count_per_instance in the component"
        why = f"azure-ai-ml starts equally many processes on each of {nodes} instances"
        context.report(config.line, f"process_count={total}, node_count={nodes}", why, fix)
    return Layout({"type": "pytorch", "process_count_per_instance": max(total // max(nodes, 1), 1)}, nodes, total)


def _per_instance(kind: str, processes: Any, nodes: int, made: Made, context: Context) -> Layout:
    if isinstance(processes, Unknown):
        context.report(made.line, f"process_count_per_node={processes.text}", UNKNOWN, _FIX)
    count = whole(processes, 1)
    return Layout({"type": kind, "process_count_per_instance": count}, nodes, nodes * count)
