"""Convert the request of a job to a plan."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from allranks.errors import InputError, Level, Problem, did_you_mean, finding
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.environment import NO_ENVIRONMENT, Environment
from allranks.plan.graph import Graph, Plan, StandIn, Step, Sweep
from allranks.plan.ports import GraphInput, GraphOutput, NodeOutput
from allranks.plan.reader import registered_component, stand_in, step_ports
from allranks.plan.reader.context import Context
from allranks.plan.reader.nodes import declared_inputs, read_graph, read_node
from allranks.plan.reader.sweep import is_conditional
from allranks.plan.walk import is_within, with_steps
from allranks.sdk.compilation import Locate, nowhere
from allranks.sdk.paths import shown
from allranks.sdk.request import ComponentRequest, JobRequest, NodeRequest, not_run, not_run_name
from allranks.sdk.suppressions import remaining
from allranks.sdk.uploads import code_elsewhere
from allranks.sdk.yaml_lines import with_key_lines


def read(
    job: JobRequest,
    snapshots: Path | None,
    source: str = "",
    locate: Locate = nowhere,
    lookup: AssetLookup | None = None,
) -> Plan:
    """Return the plan of a pipeline job, or of a command job or a sweep, which becomes a plan with one node.

    snapshots: the folder to which code is copied; None to copy none, so that the plan cannot run
    locate:    returns the location of the node at a path, for messages
    lookup:    resolves ids; None to leave them unresolved, as for Azure ML

    Raise InputError, with every problem, if the local engine cannot run the job.
    """
    context = Context(job.base, snapshots, {}, locate, lookup)
    if job.type == "pipeline":
        return _pipeline(job, source, context)
    if isinstance(job.root, NodeRequest):
        return _job_of_one_node(job, job.root, source, replace(context, alone=True))
    where = f"job {job.name}".rstrip() + (f" ({shown(source)})" if source else "")
    raise InputError(not_run(where, not_run_name(job.type)))


def unread(job: JobRequest) -> tuple[str, ...]:
    """Return the steps that cannot be read: those of registered components, those without local code, and jobs of an
    unsupported kind."""
    if isinstance(job.root, ComponentRequest):
        return tuple(_unread(job.root.nodes, ""))
    if isinstance(job.root, NodeRequest) and job.type != "spark" and not is_conditional(job.root):
        return tuple(_unread({job.name: job.root}, ""))
    return () if job.type == "pipeline" else (job.name or job.type,)


def _unread(nodes: Mapping[str, NodeRequest], path: str) -> Iterator[str]:
    for name, node in nodes.items():
        component = node.component
        if isinstance(component, str):
            yield f"{path}{name}"
        elif component is not None and node.type == "pipeline":
            yield from _unread(component.nodes, f"{path}{name}.")
        elif component is not None and component.code is not None and code_elsewhere(component.code):
            yield f"{path}{name}"


def _root(job: JobRequest, source: str, context: Context) -> ComponentRequest:
    """Return the component of a pipeline, which the job may name by id, with the outputs that the job sets."""
    where = "key component" + (f" ({shown(source)})" if source else "")
    if isinstance(job.root, ComponentRequest):
        component = job.root
    elif context.lookup is None:
        return ComponentRequest({}, {}, {}, None, None, {}, job.base, "", is_anonymous=True)
    else:
        component = registered_component.load(str(job.root), where, context.lookup)
    declared = component.outputs
    changed = {
        name: {**declared.get(name, port), **{key: value for key, value in port.items() if value}}
        for name, port in job.outputs.items()
    }
    return replace(component, outputs={**declared, **changed})


def _pipeline(job: JobRequest, source: str, context: Context) -> Plan:
    component = _root(job, source, context)
    values = {name: declared["default"] for name, declared in component.inputs.items()} | {
        name: value for name, value in job.inputs.items() if isinstance(value, (str, int, float, bool))
    }
    datastore = str(job.settings["default_datastore"] or context.datastore).removeprefix("azureml:").rpartition("/")[2]
    context = replace(context, values=values, datastore=datastore)
    first, last = (str(job.settings[key] or "") for key in ("on_init", "on_finalize"))
    inner = replace(context, base=component.base if component.file else context.base)
    graph = read_graph(component, (), inner, first=first, last=last)
    context.problems.extend(stand_in.unknown(context.lookup) if context.lookup else ())
    graph = _with_settings(graph, context)
    at = f" ({shown(source)})" if source else ""
    for key, message in job.problems:
        context.problems.append(Problem(f"key {key}{at}", message, "a step that no other node is connected to"))
    inputs = declared_inputs(component, job.inputs, context, at)
    inputs = tuple(replace(port, on_azure=step_ports.LEFT_OUT) if port.name in job.dropped else port for port in inputs)
    plan = Plan(
        name=job.name,
        graph=replace(graph, inputs=inputs),
        display_name=job.display_name,
        description=job.description,
        experiment=job.experiment,
        source=source,
        continue_on_step_failure=job.settings["continue_on_step_failure"] is not False,
        force_rerun=job.settings["force_rerun"] is True,
    )
    return _without_problems(plan, context)


def _job_of_one_node(job: JobRequest, request: NodeRequest, source: str, context: Context) -> Plan:
    name = job.name
    node = read_node(name, request, None, context)
    if isinstance(node, StandIn):
        context.problems.append(not_run(str(context.place(name)), node.what))
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
        description=job.description or step.description,
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
        experiment=job.experiment,
        source=source,
    )
    return _without_problems(plan, context)


def _with_settings(graph: Graph, context: Context) -> Graph:
    """Return the graph with the section `run_in` of ``allranks.yaml`` applied to the environments of its steps.

    The setting of a loop or a pipeline component applies to all steps within it. Add a warning for each name without a
    step or environment.
    """
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
            context.problems.append(finding("unknown-step", where, found, expected, did_you_mean(name, paths)))
    return graph


def _without_problems(plan: Plan, context: Context) -> Plan:
    """Return the plan with its warnings, except those that a comment ignores. Raise InputError for other problems."""
    problems = _remaining(context, plan.source)
    accepted = (Level.WARNING, Level.MACHINE) if context.lookup and context.lookup.draws else (Level.WARNING,)
    if any(problem.level not in accepted for problem in problems):
        raise InputError.of(problems)
    return replace(plan, findings=problems)


def _remaining(context: Context, source: str) -> tuple[Problem, ...]:
    return remaining(with_key_lines(context.problems, source))
