"""Read how many processes v1 starts, and where: its counts are totals, those of azure-ai-ml are per instance."""

from __future__ import annotations

from typing import Any

from allranks.migrate.context import UNKNOWN, Context, of, whole
from allranks.migrate.jobs import Layout
from allranks.migrate.operations import Made, Unknown

_TYPES = {
    "mpi": "mpi", "openmpi": "mpi", "intelmpi": "mpi", "nccl": "pytorch", "gloo": "pytorch", "pytorch": "pytorch",
    "tensorflow": "tensorflow", "parameterserver": "tensorflow", "ps": "tensorflow",
}  # fmt: skip
"""The distribution for a configuration, a communicator, or a backend of an estimator."""

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
    framework = "tensorflow" if str(settings["framework"]).lower() == "tensorflow" else ""
    given, name = made, str(made.get("distributed_backend") or settings["communicator"] or framework).lower()
    if isinstance(config, Made):
        given, name = config, config.kind.lower().removesuffix("configuration")
    kind = _TYPES.get(name, "mpi" if given is config or made.kind == "MpiStep" or nodes > 1 else "")
    if not kind:
        return Layout({}, nodes, nodes)

    def number(key: str, position: int, default: int) -> int:
        value = given.get(key, position if given is config else None)
        if isinstance(value, Unknown):
            context.report(given.line, f"{given.kind}({key}={value.text})", UNKNOWN, _FIX)
        return whole(value, default)

    if kind == "tensorflow":
        workers, servers = number("worker_count", 0, nodes), number("parameter_server_count", 1, 0)
        if not servers:
            return Layout({"type": kind, "worker_count": workers}, workers, workers)
        fix = "check that the cluster has enough instances, or set resources.instance_count to their sum"
        why = "v1 starts each parameter server on a node of its own, azure-ai-ml beside a worker"
        context.report(given.line, f"parameter_server_count={servers}", why, fix)
        counts = {"worker_count": workers, "parameter_server_count": servers}
        return Layout({"type": kind, **counts}, max(workers, servers), workers + servers)
    if given is config:
        nodes = number("node_count", 2 if name == "pytorch" else 1, nodes)
    if name != "pytorch":
        default = made.get("process_count_per_node", default=of(configuration, "mpi.process_count_per_node"))
        processes = number("process_count_per_node", 0, whole(default, 1))
        return Layout({"type": kind, "process_count_per_instance": processes}, nodes, nodes * processes)
    total = number("process_count", 1, nodes)
    if nodes < 1 or total < 1 or total % nodes:
        fix = "choose process_count_per_instance in the component"
        why = f"azure-ai-ml starts equally many processes on each of {nodes} instances"
        context.report(given.line, f"process_count={total}, node_count={nodes}", why, fix)
    return Layout({"type": kind, "process_count_per_instance": max(total // max(nodes, 1), 1)}, nodes, total)
