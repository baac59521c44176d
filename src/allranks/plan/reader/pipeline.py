"""Convert a job of the SDK to a plan."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Level, Problem, did_you_mean
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.environment import NO_ENVIRONMENT, Environment
from allranks.plan.graph import Graph, Plan, StandIn, Step, Sweep
from allranks.plan.ports import GraphInput, GraphOutput, NodeOutput
from allranks.plan.reader import registered_component, stand_in, step_ports
from allranks.plan.reader.context import Context, Locate, plain
from allranks.plan.reader.nodes import READERS, declared_inputs, read_graph, read_node
from allranks.plan.reader.nodes import types_by_use as types_of_nodes
from allranks.plan.reader.sweep import is_conditional
from allranks.plan.rules import NO_COMPUTE, UNKNOWN_STEP
from allranks.plan.walk import is_within, with_steps
from allranks.sdk import internals, validation_errors
from allranks.sdk.paths import shown
from allranks.sdk.suppressions import Suppressions
from allranks.sdk.uploads import code_elsewhere
from allranks.sdk.yaml_lines import with_key_lines


def read(
    job: Any,
    snapshots: Path | None,
    source: str = "",
    locate: Locate = lambda path: None,  # noqa: ARG005
    lookup: AssetLookup | None = None,
) -> Plan:
    """Return the plan of a pipeline job, or of a command job or a sweep, which becomes a plan with one node.

    snapshots: the folder to which code is copied; None: it is not copied, and the plan cannot run
    locate:    returns where a node is in the user's files, by its path, for messages
    lookup:    resolves ids; None: ids are not resolved, as for Azure ML

    Raise InputError, with every problem, if the local engine cannot run the job.
    """
    from azure.ai.ml.entities import Command, Parallel, Pipeline, PipelineJob, Spark
    from azure.ai.ml.sweep import SweepJob

    context = Context(Path(getattr(job, "base_path", None) or "."), snapshots, {}, locate, lookup)
    if isinstance(job, Pipeline):
        job, dropped = internals.as_pipeline_job(job)
        return _pipeline(job, source, context, dropped)
    if isinstance(job, PipelineJob):
        return _pipeline(_with_component(job, source, lookup), source, context)
    if isinstance(job, SweepJob):
        job = _sweep_node(job)
    if isinstance(job, (Command, Parallel, Spark, internals.Sweep)):
        return _job_of_one_node(job, source, replace(context, alone=True))
    name = getattr(job, "name", None) or getattr(job, "display_name", None) or ""
    where = f"job {name}".rstrip() + (f" ({shown(source)})" if source else "")
    raise InputError(stand_in.not_run(where, stand_in.what_is(job)))


def _with_component(job: Any, source: str, lookup: AssetLookup | None) -> Any:
    """Return a job whose body is the id of a component as one that has the component."""
    from azure.ai.ml.entities import PipelineJob

    if lookup is None or not isinstance(job.component, str):
        return job
    where = "key component" + (f" ({shown(source)})" if source else "")
    component = registered_component.load(job.component, where, lookup)
    inputs = {name: internals.data(port) for name, port in job.inputs.items()}
    outputs = {**component.outputs, **{name: internals.data(port) for name, port in job.outputs.items()}}
    own = ("name", "display_name", "description", "experiment_name", "settings", "base_path")
    settings = {name: getattr(job, name) for name in own}
    return PipelineJob(component=component, inputs=inputs, outputs=outputs, **settings)


def _sweep_node(job: Any) -> Any:
    try:
        return internals.sweep_node(job)
    except Exception as error:
        if not validation_errors.is_own(error):
            raise
        raise InputError(Problem("key inputs", validation_errors.one_line(error), "values or data")) from None


_WITH_COMPONENTS = ("Command", "DataTransferCopy", "Parallel", "Pipeline", "Sweep")
"""The SDK's classes of nodes that are read with their component."""


def unread(job: Any) -> tuple[str, ...]:
    """Return the steps that cannot be read: those of registered components, or with code that is not local; and a job
    that is of an unsupported kind."""
    from azure.ai.ml.entities import PipelineJob

    if isinstance(job, PipelineJob):
        return tuple(_unread(job.jobs, ""))
    node = _sweep_node(job) if type(job).__name__ == "SweepJob" else job
    own = {str(job.name or job.type): node}
    is_read = type(node).__name__ in READERS and not (isinstance(node, internals.Sweep) and is_conditional(node))
    return tuple(_unread(own, "") if is_read else own)


def _unread(nodes: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, node in nodes.items():
        kind = type(node).__name__
        if kind == "Pipeline" and not isinstance(node.component, str):
            yield from _unread(node.component.jobs, f"{path}{name}.")
        elif kind in _WITH_COMPONENTS and not _is_local(internals.component(node)):
            yield f"{path}{name}"


def _is_local(component: Any) -> bool:
    if isinstance(component, str):
        return False
    return not (isinstance(component, internals.ComponentCodeMixin) and code_elsewhere(component))


def without_compute(job: Any) -> tuple[str, ...]:
    """Return the paths of the steps for which neither they nor the SDK's pipeline job name a compute.

    The SDK refuses to submit them, even if they name a size. A command job without a compute has no such step.
    """
    from azure.ai.ml.entities import PipelineJob

    # Their keys are jobs.inner.jobs.train.compute.
    keys = internals.validate_compute(job).error_messages if isinstance(job, PipelineJob) else ()
    return tuple(".".join(key.split(".")[1:-1:2]) for key in keys)


def no_compute(job: Any, source: str) -> tuple[Problem, ...]:
    """Return the warning that steps of the SDK's job have no compute."""
    if not (steps := without_compute(job)):
        return ()
    where = f"key settings.default_compute{f' ({shown(source)})' if source else ''}"
    found = f"no compute is given for step{'s' if steps[1:] else ''} {', '.join(steps)}"
    problem = NO_COMPUTE.problem(where, found, "a cluster, or serverless")
    return Suppressions().remaining(with_key_lines([problem], source))


def types_by_use(job: Any) -> dict[str, str]:
    """Return the types of the ports that a job's inputs are bound to. Inputs without annotation have these types."""
    from azure.ai.ml.entities import PipelineJob

    return types_of_nodes(job.jobs) if isinstance(job, PipelineJob) else {}


def _pipeline(job: Any, source: str, context: Context, dropped: frozenset[str] = frozenset()) -> Plan:
    """Return the plan of a pipeline job. dropped: inputs whose values azure-ai-ml does not send"""
    from azure.ai.ml import Input

    given_values = {name: internals.data(port) for name, port in step_ports.flat(job.inputs)}
    values = {name: plain(meta.default) for name, meta in step_ports.flat_definitions(job.component.inputs)} | {
        name: plain(data)
        for name, data in given_values.items()
        if not isinstance(data, Input) and isinstance(plain(data), (str, int, float, bool))
    }
    datastore = str(job.settings.default_datastore or context.datastore).removeprefix("azureml:").rpartition("/")[2]
    context = replace(context, values=values, datastore=datastore)
    source_of_component = internals.source_path(job.component)
    base = Path(job.component.base_path) if source_of_component and job.component.base_path else context.base
    first, last = (str(name or "") for name in (job.settings.on_init, job.settings.on_finalize))
    graph = read_graph(job, (), replace(context, base=base), first=first, last=last)
    context.problems.extend(stand_in.unknown(context.lookup) if context.lookup else ())
    graph = _with_settings(graph, context)
    for key, message in internals.validate_first_and_last(job).error_messages.items():
        where = f"key {key}{f' ({shown(source)})' if source else ''}"
        context.problems.append(Problem(where, message, "a step that no other node is connected to"))
    inputs = declared_inputs(job.component, given_values, context, f" ({shown(source)})" if source else "")
    inputs = tuple(replace(port, on_azure=step_ports.LEFT_OUT) if port.name in dropped else port for port in inputs)
    plan = Plan(
        name=_name(job, source),
        graph=replace(graph, inputs=inputs),
        display_name=str(job.display_name or ""),
        description=str(job.description or ""),
        experiment=str(job.experiment_name or ""),
        source=source,
        continue_on_step_failure=job.settings.continue_on_step_failure is not False,
        force_rerun=job.settings.force_rerun is True,
    )
    return _without_problems(plan, context)


def _job_of_one_node(job: Any, source: str, context: Context) -> Plan:
    name = _name(job, source)
    node = read_node(name, job, context)
    if isinstance(node, StandIn):
        context.problems.append(stand_in.not_run(str(context.place(name)), node.what))
    elif node is not None:
        (node,) = _with_settings(Graph((node,)), context).nodes
    if not isinstance(node, (Step, Sweep)):
        raise InputError.of(_remaining(context, source))
    step = node.body if isinstance(node, Sweep) else node
    sampled = node.sampled if isinstance(node, Sweep) else frozenset[str]()
    inputs = tuple(port for port in step.inputs if port.name not in sampled)
    outputs = tuple(GraphOutput(port.name, NodeOutput(name, port.name), port.type) for port in step.outputs)
    step = replace(
        step,
        # The job's inputs become the plan's, as if a pipeline with one step passed them on.
        inputs=tuple(
            port if port.name in sampled else replace(port, value=GraphInput(port.name)) for port in step.inputs
        ),
        # Azure ML reuses only steps of pipelines, never standalone jobs.
        deterministic=False,
        # The environment of a standalone job is sent; that of a step is not.
        environment=step.ignored_environment or step.environment,
        ignored_environment=NO_ENVIRONMENT,
    )
    plan = Plan(
        name=name,
        graph=Graph((replace(node, body=step) if isinstance(node, Sweep) else step,), inputs, outputs),
        display_name=step.display_name,
        description=step.description,
        experiment=str(job.experiment_name or ""),
        source=source,
    )
    return _without_problems(plan, context)


def _with_settings(graph: Graph, context: Context) -> Graph:
    """Return the graph with the ways to realise the environments of its steps that ``allranks.yaml`` sets. A loop or a
    pipeline component sets those of all steps within it. Add a warning for each name without a step or environment."""
    run_in = context.lookup.file.run_in if context.lookup and context.lookup.file else {}
    if not run_in:
        return graph
    paths: list[str] = []
    environments: set[str] = set()

    def realised(environment: Environment, path: str) -> Environment:
        environments.add(environment.name)
        around = max((name for name in run_in if is_within(path, name)), key=len, default=environment.name)
        return replace(environment, realised=run_in[around][0]) if around in run_in else environment

    def changed(step: Step, path: str) -> Step:
        paths.append(path)
        own, ignored = realised(step.environment, path), realised(step.ignored_environment, path)
        return replace(step, environment=own, ignored_environment=ignored)

    graph = with_steps(graph, changed)
    for name, (_, where) in run_in.items():
        if name not in environments and not any(is_within(path, name) for path in paths):
            found, expected = f"there is no step {name}", f"one of {', '.join(paths)}"
            context.problems.append(UNKNOWN_STEP.problem(where, found, expected, did_you_mean(name, paths)))
    return graph


def _without_problems(plan: Plan, context: Context) -> Plan:
    """Return the plan with the warnings that no comment in the user's files ignores. Raise InputError for others."""
    problems = _remaining(context, plan.source)
    if any(problem.level is not Level.WARNING for problem in problems):
        raise InputError.of(problems)
    return replace(plan, findings=problems)


def _remaining(context: Context, source: str) -> tuple[Problem, ...]:
    return Suppressions().remaining(with_key_lines(context.problems, source))


def _name(job: Any, source: str) -> str:
    component = job.trial if isinstance(job, internals.Sweep) else job.component
    own = job.name or (None if internals.is_anonymous(component) else component.name)
    return str(own or name_of_file(Path(source)) or job.type)


def name_of_file(path: Path) -> str:
    """Return the name of a file as the name of a job, which has only letters and digits of ASCII; "" if there are
    none in it."""
    text = unicodedata.normalize("NFKD", path.stem.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"\W+", "_", text).strip("_")
