"""Read the jobs of v1: scripts, commands, estimators, sweeps and parallel steps.

The numbers of processes of v1 are totals, those of azure-ai-ml are per instance.
"""

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.sdk.paths import shown
from allranks_migrate import constructs, environments
from allranks_migrate.context import UNKNOWN, Context, as_list, of, pairs, to_name, whole
from allranks_migrate.jobs import Environment, Input, Job, Layout, Sweep
from allranks_migrate.operations import Made, Unknown
from allranks_migrate.ports import Ports, type_of

_SECONDS = 60
_IMPORT = re.compile(r"\s*(from|import)\s+azureml[.\s](?!.*mlflow)")


def inner(made: Made) -> Any:
    """Return the job that a HyperDriveConfig, a HyperDriveStep or an EstimatorStep runs; None for another object."""
    if made.kind == "HyperDriveStep":
        config = made.get("hyperdrive_config")
        return inner(config) if isinstance(config, Made) else None
    if made.kind == "HyperDriveConfig":
        return made.get("run_config") or made.get("estimator")
    return made.get("estimator") if made.kind == "EstimatorStep" else None


def with_inner(made: Made) -> Made:
    """Return the job that an object runs, with the settings of the object; the object if it runs no other one."""
    job = inner(made)
    if not isinstance(job, Made):
        return made
    outputs = [*as_list(made.get("outputs")), *as_list(made.get("metrics_output"))]
    given = {
        "arguments": made.get("estimator_entry_script_arguments"),
        "outputs": outputs or None,
        **{key: made.get(key) for key in ("inputs", "compute_target", "allow_reuse")},
    }
    return replace(job, named={**job.named, **{key: value for key, value in given.items() if value is not None}})


def read(made: Made, context: Context) -> Job | None:
    """Return the job of an object of v1; None, with a finding, if its script or command is not in the file."""
    name = context.jobs[id(made)]
    if made.kind == "ParallelRunStep":
        return _parallel(made, made.get("parallel_run_config"), name, context)
    if made.kind in ("HyperDriveConfig", "HyperDriveStep", "EstimatorStep") and not isinstance(inner(made), Made):
        context.report(made.line, made.kind, "the job that it runs is not in this file", "write it by hand")
        return None
    job = replace(_script(with_inner(made), name, context), line=made.line)
    if made.get("metrics_output") is not None:
        why, fix = (
            "a sweep of azure-ai-ml writes no file of metrics",
            "read them with mlflow, or write them in the script",
        )
        context.report(made.line, f"metrics_output of {made.kind}", why, fix)
    config = made.get("hyperdrive_config") if made.kind == "HyperDriveStep" else made
    return _sweep(config, job, context) if config.kind == "HyperDriveConfig" else job


def _script(made: Made, name: str, context: Context) -> Job:
    """Return the job of a ScriptRunConfig, an estimator, a PythonScriptStep, a CommandStep or an MpiStep."""
    is_step, is_estimator = made.kind in constructs.STEPS, made.kind in constructs.ESTIMATORS
    configuration = made.get("runconfig" if is_step else "run_config")
    key = "script_name" if is_step else "entry_script" if is_estimator else "script"
    ports = Ports(made, context, name)
    command = made.get("command")
    if command is None:
        fix = "write it in the command of the component"
        script = context.text(made.get(key, default=Unknown("")), made.line, key, fix, f"{name}.py")
        words = [word for pair in pairs(made.get("script_params")) for word in pair if word not in ("", None)]
        given = as_list(made.get("arguments")) or words
        text = f"python {shlex.quote(script)} {ports.arguments(given)}"
    else:
        script, text = "", ports.command(as_list(command))
    ports.add_listed()
    if "AZ_BATCHAI_PYTORCH_INIT_METHOD" in text:
        why = "azure-ai-ml does not set it"
        context.report(made.line, "$AZ_BATCHAI_PYTORCH_INIT_METHOD", why, "use env://: MASTER_ADDR and MASTER_PORT")
    given_environment = made.get("environment", default=made.get("environment_definition"))
    if given_environment is None and is_estimator:
        environment = _estimator_environment(made, context)
    else:
        named_or_made = configuration if given_environment is None else given_environment
        environment = environments.environment(named_or_made, context, made.line)
    given_variables = made.get("environment_variables") or made.get("run_config.environment_variables")
    variables = dict(pairs(given_variables or of(configuration, "environment_variables")))
    variables |= {f"AML_PARAMETER_{key}": value for key, value in pairs(made.get("params"))}
    docker = made.get("docker_runtime_config", default=of(configuration, "docker"))
    size = of(docker, "shm_size") or made.get("shm_size")
    seconds = made.get("max_run_duration_seconds", default=made.get("timeout_seconds"))
    own = _layout(made, configuration, context)
    spec = {
        "type": "command",
        "is_deterministic": made.get("allow_reuse") is not False,
        "distribution": own.distribution,
        "resources": {"instance_count": own.instance_count, "shm_size": size if isinstance(size, str) else ""},
        "command": " ".join(text.split()),
    }
    job = Job(
        name=name,
        code=_folder(made, context),
        script=script,
        line=made.line,
        environment=environment,
        spec=spec,
        processes=own.processes,
        variables={str(key): str(each) for key, each in variables.items()},
        compute=_compute(made.get("compute_target", default=of(configuration, "target")), made, context),
        timeout=seconds if isinstance(seconds, int) else None,
    )
    return _finish(job, ports, context)


def _finish(job: Job, ports: Ports, context: Context) -> Job:
    """Return a job with its ports and variables. Report the uses of v1 in its script."""
    file = job.code / job.script
    if job.script and file.is_file():
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if _IMPORT.match(line):
                what, fix = " ".join(line.split()), "log with mlflow, and take data from the arguments"
                context.report(job.line, what, "v1 is used inside of the job", fix, f"{shown(file)}:{number}")
    variables = {**job.environment.variables, **job.variables}
    return replace(job, inputs=ports.inputs, outputs=ports.outputs, variables=variables)


def _folder(made: Made, context: Context) -> Path:
    text = context.text(made.get("source_directory"), made.line, "source_directory", "set code", ".")
    folder = Path(os.path.normpath(context.base / text))
    if not folder.is_dir():
        context.report(made.line, f"source_directory {text}", "there is no such folder yet", "create it, or set code")
    return folder


def _compute(value: Any, made: Made, context: Context) -> str:
    while isinstance(value, Made):  # ws.compute_targets["name"], ComputeTarget(workspace=ws, name="name")
        names = [each for each in (value.get("name", 1), *value.values[:1]) if isinstance(each, str)]
        value = names[0] if names else value.receiver
    if value == "local":
        fix = "name a cluster; allranks run starts the pipeline on this machine all the same"
        context.report(made.line, "compute target local", "a pipeline of azure-ai-ml has none", fix)
        return ""
    return context.text(value, made.line, "compute target", "set default_compute of the pipeline")


def _estimator_environment(made: Made, context: Context) -> Environment:
    conda = [str(each) for each in as_list(made.get("conda_packages"))]
    packages = [str(each) for each in as_list(made.get("pip_packages"))]
    if framework := {"PyTorch": "torch", "TensorFlow": "tensorflow", "SKLearn": "scikit-learn"}.get(made.kind):
        version = made.get("framework_version")
        packages.insert(0, f"{framework}=={version}" if isinstance(version, str) else framework)
        fix = "check the image and the packages of the environment"
        context.report(made.line, made.kind, "v1 chose its image and packages by the framework", fix)
    file = made.get("pip_requirements_file", default=made.get("pip_requirements_file_path"))
    packages += environments.requirements(file, context, made) if file is not None else []
    image = made.get("custom_docker_image", default=made.get("custom_docker_base_image"))
    name = to_name(f"{context.script.path.stem}_{made.kind}", "environment")
    return environments.on_image(name, image, environments.conda_file(packages, conda))


def _sweep(made: Made, job: Job, context: Context) -> Job:
    """Return the job as the trial of a sweep."""
    sampling, policy, early = made.get("hyperparameter_sampling"), made.get("policy"), ""
    kinds = (*constructs.SAMPLERS, *constructs.POLICIES, "NoTerminationPolicy")
    for key, value in (("hyperparameter_sampling", sampling), ("policy", policy)):
        if value is not None and getattr(value, "kind", "") not in kinds:
            context.report(made.line, f"{key} of {made.kind}", UNKNOWN, "set it for the sweep")
    space, inputs, words = dict[str, str](), dict(job.inputs), [job.spec["command"]]
    for flag, value in pairs(of(sampling, "parameter_space", 0)):
        kind = constructs.VALUES.get(value.kind, "") if isinstance(value, Made) else ""
        parts = [*value.values, *value.named.values()] if isinstance(value, Made) else []
        flat = [each for part in parts for each in (part if isinstance(part, (list, range)) else [part])]
        if not kind or not flat or any(isinstance(each, (Unknown, Made)) for each in flat):
            context.report(made.line, f"{flag} of {made.kind}", UNKNOWN, "add it to the sweep")
            continue
        name = to_name(str(flag), "value")
        space[name] = f"{kind}({flat if kind == 'Choice' else ', '.join(map(repr, flat))})"
        inputs[name] = Input({"Choice": type_of(flat[0]), "Randint": "integer"}.get(kind, "number"))
        words += [f"{flag} ${{{{inputs.{name}}}}}"] * (f"${{{{inputs.{name}}}}}" not in words[0])
    minutes = made.get("max_duration_minutes")
    given = {
        "max_total_trials": made.get("max_total_runs", default=1),
        "max_concurrent_trials": made.get("max_concurrent_runs"),
        "timeout": minutes * _SECONDS if isinstance(minutes, int) else None,
        "trial_timeout": job.timeout,
    }
    if isinstance(policy, Made) and policy.kind in constructs.POLICIES:
        values = [(name, policy.get(name, index)) for index, name in enumerate(constructs.POLICIES[policy.kind])]
        arguments = [f"{name}={value}" for name, value in values if isinstance(value, (int, float))]
        early = f"{policy.kind}({', '.join(arguments)})"
    sweep = Sweep(
        space=space,
        sampling=constructs.SAMPLERS.get(sampling.kind if isinstance(sampling, Made) else "", "random"),
        metric=str(made.get("primary_metric_name")),
        goal="minimize" if "minimize" in str(made.get("primary_metric_goal")).lower() else "maximize",
        limits={name: value for name, value in given.items() if isinstance(value, int)},
        policy=early,
    )
    if job.variables:  # the trial of a sweep in a pipeline is a component, which has none
        exported = (f"{name}={shlex.quote(value)}" for name, value in job.variables.items())
        words.insert(0, f"export {' '.join(exported)};")
    spec = {**job.spec, "command": " ".join(words)}
    return replace(job, sweep=sweep, inputs=inputs, spec=spec, variables={}, timeout=None)


def _parallel(made: Made, config: Any, name: str, context: Context) -> Job | None:
    if not isinstance(config, Made):
        context.report(made.line, made.kind, "its parallel_run_config is not in this file", "write it by hand")
        return None
    ports = Ports(made, context, name)
    arguments = ports.arguments(as_list(made.get("arguments")))
    ports.add_listed()
    data = next((each for each, port in ports.inputs.items() if port.type.startswith("uri_")), "")
    size = config.get("mini_batch_size", default=10)
    entry = context.text(config.get("entry_script"), made.line, "entry_script", "write it in the component", "score.py")
    task = {"type": "run_function", "entry_script": entry, "program_arguments": arguments}
    if ports.outputs and config.get("output_action", default="append_row") == "append_row":
        file = config.get("append_row_file_name", default="parallel_run_step.txt")
        task["append_row_to"] = f"${{{{outputs.{next(iter(ports.outputs))}}}}}/{file}"
    spec = {
        "type": "parallel",
        "is_deterministic": made.get("allow_reuse") is not False,
        "resources": {"instance_count": whole(config.get("node_count"), 1)},
        "input_data": f"${{{{inputs.{data}}}}}" if data else ports.parameter("data", "uri_folder"),
        "mini_batch_size": str(size if isinstance(size, (int, str)) else 10),
        "mini_batch_error_threshold": whole(config.get("error_threshold"), -1),
        "max_concurrency_per_instance": whole(config.get("process_count_per_node"), 1),
        "retry_settings": {
            "max_retries": whole(config.get("run_max_try"), 3),
            "timeout": whole(config.get("run_invocation_timeout"), _SECONDS),
        },
        "task": task,
    }
    job = Job(
        name=name,
        code=_folder(config, context),
        script=entry,
        line=made.line,
        environment=environments.environment(config.get("environment"), context, made.line),
        spec=spec,
        compute=_compute(config.get("compute_target"), made, context),
    )
    return _finish(job, ports, context)


_TYPES = {
    "mpi": "mpi", "openmpi": "mpi", "intelmpi": "mpi", "nccl": "pytorch", "gloo": "pytorch", "pytorch": "pytorch",
    "tensorflow": "tensorflow", "parameterserver": "tensorflow", "ps": "tensorflow",
}  # fmt: skip
"""The distribution for a configuration, a communicator, or a backend of an estimator."""

_FIX = "set distribution and resources.instance_count in the component"


def _layout(made: Made, configuration: Any, context: Context) -> Layout:
    """Return the layout of a job.

    configuration: the RunConfiguration of the job, if it has one
    """
    config = made.get("distributed_job_config", default=made.get("distributed_training"))
    names = ("node_count", "communicator", "framework", "mpi.process_count_per_node")
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
        default = made.get("process_count_per_node", default=settings["mpi.process_count_per_node"])
        processes = number("process_count_per_node", 0, whole(default, 1))
        return Layout({"type": kind, "process_count_per_instance": processes}, nodes, nodes * processes)
    total = number("process_count", 1, nodes)
    if nodes < 1 or total < 1 or total % nodes:
        fix = "choose process_count_per_instance in the component"
        why = f"azure-ai-ml starts equally many processes on each of {nodes} instances"
        context.report(given.line, f"process_count={total}, node_count={nodes}", why, fix)
    return Layout({"type": kind, "process_count_per_instance": max(total // max(nodes, 1), 1)}, nodes, total)
