"""Write a pipeline job of a workspace as files: its graph, and the components and environments that it names.

An asset without a name becomes a file that the job uploads again. A registered asset keeps its id, so that submitting
the files sends the same request; ``allranks.yaml`` names its copy for runs on this machine.
"""

import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from allranks.azure import dsl
from allranks.azure.errors import AzureError, SignInError, service_errors, translate
from allranks.azure.workspace import connect, quiet_uploads
from allranks.errors import InputError, Problem
from allranks.plan.assets import asset_id
from allranks.plan.assets.asset_id import COMPONENT, ENVIRONMENT, LATEST, AssetId
from allranks.plan.reader import opened
from allranks.sdk import internals
from allranks.sdk.session import session

_READ = ("automl", "command", "data_transfer", "import", "parallel", "pipeline", "spark", "sweep")
"""The types of nodes that azure-ai-ml converts. Those in `dsl.LOOPS` are in the request as in a file."""
_NOT_OF_FILES = ("id", "creation_context", "services", "status", "properties", "additional_includes")
_FIRST = ("$schema", "name", "version", "display_name", "description", "type")
_ADDED = {
    "resources": {"instance_count": 1},
    "retry_settings": {"max_retries": 3, "timeout": 60},
    "error_threshold": -1,
}
"""Values that the service adds to components."""
_SIDES = ("inputs", "outputs")
_ANONYMOUS, _ANONYMOUS_ENVIRONMENT = "azureml_anonymous", "CliV2AnonymousEnvironment"
_IMAGE = {"image": "python:3.12"}
"""The environment of a stand-in, which is never built."""


@dataclass
class Pulled:
    """What was written.

    files:     those of the pipeline
    stand_ins: step -> the component that a stand-in replaces, and why
    notes:     what could not be written
    """

    job: str
    folder: Path
    files: list[str] = field(default_factory=list)
    stand_ins: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def pull(client: Any, name: str, folder: Path) -> Pulled:
    """Write the job with a name into a new or empty folder.

    Raise InputError or AzureError, with nothing written, if the job cannot be read or the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        found = "it is not empty" if folder.is_dir() else "it is a file"
        raise InputError(Problem(str(folder), found, "a new or an empty folder", "name another folder: --to DIR"))
    with session(), service_errors(f"requesting job {name}"):
        body = internals.job_body(client, name)
    kind = (body.get("properties") or {}).get("jobType")
    if kind != "Pipeline" or not body["properties"].get("jobs"):
        found = f"it is a job of type {kind}" if kind else "it is a step of a pipeline"
        found = "it is a registered pipeline component, whose steps are not in the job" if kind == "Pipeline" else found
        raise InputError(Problem(f"job {name}", found, "a pipeline job with steps", "name the job of a pipeline"))
    existing = next(parent for parent in folder.absolute().parents if parent.is_dir())
    with tempfile.TemporaryDirectory(prefix=".allranks-", dir=existing) as temporary:
        staged = _Staged(client, Path(temporary, "job"), Pulled(name, folder))
        with session(), service_errors(f"reading job {name}"):
            tree = staged.tree(body)
        staged.write_pipeline(tree)
        if not staged.pulled.files:
            raise InputError(Problem(f"job {name}", "; ".join(staged.pulled.notes), "a job that a file can describe"))
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.replace(staged.folder, folder)
    return staged.pulled


@dataclass
class _Staged:
    """The files before they are moved to their folder.

    parts:   by the id of a component: the reference to it, a path or an id; its spec, or only its ports; and the
             reason why it is a stand-in, or ""
    mapping: the sections of ``allranks.yaml``
    """

    client: Any
    folder: Path
    pulled: Pulled
    parts: dict[str, tuple[str, Mapping[str, Any], str]] = field(default_factory=dict)
    mapping: dict[str, dict[str, str]] = field(default_factory=lambda: {"components": {}, "environments": {}})

    def write(self, path: str, content: Mapping[str, Any] | str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        options: Any = {"sort_keys": False, "width": 120, "allow_unicode": True}
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content, **options), encoding="utf-8")

    def write_pipeline(self, tree: Mapping[str, Any]) -> None:
        """Write the files of a pipeline, without those that azure-ai-ml cannot read."""
        if mapping := {section: lines for section, lines in self.mapping.items() if lines}:
            self.write("allranks.yaml", mapping)
        specs = {reference: spec for reference, spec, _ in self.parts.values()}
        tree = dsl.with_types(tree, specs)
        for name in ("pipeline.py", "pipeline.yml"):
            try:
                self.write(name, dsl.text(tree, specs) if name.endswith("py") else _without_unset(tree))
                with opened(str(self.folder / name), {}, client=True) as job:
                    job.request()
                self.pulled.files.append(name)
            except (dsl.NotExpressible, InputError) as error:
                (self.folder / name).unlink(missing_ok=True)
                why = error.problems[0].found if isinstance(error, InputError) else error
                self.pulled.notes.append(f"{name} cannot be written: {why}")

    def tree(self, body: Any) -> dict[str, Any]:
        """Return the tree of the pipeline's file, whose components are written."""
        jobs, classic = dict(body["properties"]["jobs"]), {}
        for name, job in jobs.items():
            if (kind := job.get("type")) not in (*_READ, *dsl.LOOPS):
                classic[name] = f"azure-ai-ml does not read its type {kind}, such as that of a classic module"
                jobs[name] = {**job, "type": "command", "componentId": job.get("componentId") or f"azureml:{name}:1"}
        body.properties.jobs = {name: job for name, job in jobs.items() if job["type"] in _READ}
        tree = _plain(internals.job_tree(self.client, body))
        for name, job in jobs.items():
            job = tree["jobs"].pop(name, None) or {key: value for key, value in job.items() if key != "_source"}
            tree["jobs"][name] = job  # in the order of the job
            # What the SDK's conversion drops or breaks (azure-ai-ml 1.35.2)
            job |= {"display_name": title} if (title := jobs[name].get("display_name")) else {}
            if isinstance(keys := jobs[name].get("partition_keys"), str):
                job["partition_keys"] = json.loads(keys)
            job.pop("name", None)
            job.pop("task", None) if job["type"] == "parallel" else None  # that of its component
            for port in job.get("outputs", {}).values() if job["type"] == "automl" else ():
                port["type"] = port.pop("job_output_type")
        for name, job in tree["jobs"].items():
            key = "trial" if job["type"] == "sweep" else "component"
            if isinstance(identity := job.get(key), str):
                if identity not in self.parts:
                    self.parts[identity] = self._component(name, identity, tree["jobs"], classic.get(name, ""))
                job[key], _, why = self.parts[identity]
                if why:
                    self.pulled.stand_ins[name] = f"{job[key]}: {why}"
        return {key: value for key, value in tree.items() if key not in (*_NOT_OF_FILES, "name")}

    def _component(self, node: str, identity: str, jobs: Any, why: str) -> tuple[str, Mapping[str, Any], str]:
        """Write a component with its code, or a stand-in, and return it as in `parts`. why: it cannot be read"""
        asset, spec = asset_id.parse(identity, COMPONENT), None
        if not why:
            spec, why = _readable(f"requesting component {asset.short}", lambda: self._spec(asset))
        spec = spec or _ports(node, jobs)
        kind = spec.setdefault("type", "command" if jobs[node]["type"] == "sweep" else jobs[node]["type"])
        path = self._new_folder("components", node if spec.get("name", _ANONYMOUS) == _ANONYMOUS else spec["name"])
        owner = spec.get("task") or spec
        if kind == "pipeline" and not why:
            why = "the service returns the ports of a pipeline component, not its steps"
        if str(owner.get("code")).startswith("azureml:/") and not why:
            code = asset_id.parse(owner["code"], asset_id.CODE)
            owner["code"], why = _readable("downloading its code", lambda: self._download(code, path))
        if isinstance(environment := owner.get("environment"), str) and not why:
            owner["environment"] = self._environment(environment, path)
        self.write(f"{path}/component.yaml", _stand_in(spec, asset, why) if why else spec)
        if asset.name == _ANONYMOUS and not why:
            return f"./{path}/component.yaml", spec, ""
        self.mapping["components"][str(asset).removeprefix("azureml:").lstrip("/")] = f"{path}/component.yaml"
        return str(asset), spec, why

    def _spec(self, asset: AssetId) -> dict[str, Any]:
        client = connect(asset.registry) if asset.registry else self.client
        version = {"version": asset.version} if asset.version else {"label": asset.label or LATEST}
        spec = _plain(internals.as_dict(client.components.get(asset.name, **version)))
        kept = [key for key, value in spec.items() if key not in _NOT_OF_FILES and _ADDED.get(key, "") != value]
        return {key: spec[key] for key in (*_FIRST, *kept) if key in kept}

    def _download(self, code: AssetId, path: str) -> str:
        with quiet_uploads():
            internals.download_code(self.client, code.name, code.version, self.folder / path / "code")
        return "./code"

    def _environment(self, identity: str, path: str) -> Any:
        """Return the definition of an environment without a name, and the id of any other.

        path: the folder of the file that names it
        """
        asset = asset_id.parse(identity, ENVIRONMENT)
        if asset.registry:
            return str(asset)
        doing, reference = f"requesting environment {asset.short}", f"azureml:{asset.short}"
        get = self.client.environments.get
        found, why = _readable(doing, lambda: _plain(internals.as_dict(get(asset.name, version=asset.version))))
        is_anonymous = asset.name == _ANONYMOUS_ENVIRONMENT
        if found is not None and not (asset.short in self.mapping["environments"] and not is_anonymous):
            path = path if is_anonymous else self._new_folder("environments", asset.name)
            if build := found.get("build"):
                context = self.folder / path / "context"
                _, why = _readable(doing, lambda: internals.download_context(self.client, build["path"], context))
                found["build"] = {**build, "path": "./context"}
            left_out = (*_NOT_OF_FILES, *(("name", "version") if is_anonymous else ()))
            found = {key: value for key, value in found.items() if key not in left_out}
            if is_anonymous and not why:
                return found
            if not why:
                self.write(f"{path}/environment.yaml", found)
                self.mapping["environments"][asset.short] = f"{path}/environment.yaml"
        if why:
            self.pulled.notes.append(f"environment {asset.short} cannot be read: {why}")
        return reference

    def _new_folder(self, kind: str, name: str) -> str:
        """Create a folder for a component or an environment, and return its path."""
        slug, number = re.sub(r"\W", "_", name), 1
        while (self.folder / (path := f"{kind}/{slug}{'' if number == 1 else f'_{number}'}")).exists():
            number += 1
        (self.folder / path).mkdir(parents=True)
        return path


def _stand_in(spec: Mapping[str, Any], asset: AssetId, why: str) -> dict[str, Any]:
    """Return a component with the same ports, whose command fails saying what it stands for."""
    text = f"this stands for {asset}: {why}; give its outputs with --stand-in STEP=FOLDER"
    about = {"name": spec.get("name") or asset.name, "version": "1", "type": spec["type"], "description": text}
    about |= {side: spec.get(side) or {} for side in _SIDES}
    command = {"command": f"echo {shlex.quote(text)} >&2; exit 1", "environment": _IMAGE}
    if spec["type"] != "pipeline":
        return {**about, **command}
    outputs = {name: f"${{{{parent.outputs.{name}}}}}" for name in about["outputs"]}
    return {**about, "jobs": {"stand_in": {"type": "command", **command, "outputs": outputs}}}


def _readable(doing: str, read: Callable[[], Any]) -> tuple[Any, str]:
    """Return what a function reads; None, with the reason, if it is refused or cannot be understood.

    Raise SignInError, or AzureError for a failure of the service or of the connection.
    """
    from azure.core.exceptions import AzureError as CoreError  # takes 0.1 s to import

    try:
        return read(), ""
    except Exception as error:
        inner = internals.cause(error)
        found = translate(inner, doing)
        if found is None:
            raise
        if isinstance(found, SignInError) or (isinstance(found, AzureError) and isinstance(inner, CoreError)):
            raise found from None
        return None, (found.problem if isinstance(found, AzureError) else found.problems[0]).found


def _ports(name: str, jobs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ports of a node's component, as far as the graph shows them."""

    def type_of(port: Any) -> str:
        given = port.get("type") if isinstance(port, dict) else None
        return str(given or ("uri_folder" if isinstance(port, dict) or "${{" in str(port) else "string"))

    pattern = rf"\$\{{\{{parent\.jobs\.{re.escape(name)}\.outputs\.(\w+)\}}\}}"
    read = {port: {"type": "uri_folder"} for port in re.findall(pattern, json.dumps(jobs))}
    sides = [{port: {"type": type_of(value)} for port, value in jobs[name].get(s, {}).items()} for s in _SIDES]
    return {"inputs": sides[0], "outputs": {**read, **sides[1]}}


def _without_unset(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree without bindings to inputs of the pipeline that have no value: YAML cannot declare them."""
    known = {"", *tree.get("inputs", {})}
    jobs = {name: dict(job) for name, job in tree["jobs"].items()}
    for job in (job for job in jobs.values() if "inputs" in job):
        job["inputs"] = {port: value for port, value in job["inputs"].items() if dsl.input_of(value) in known}
    return {**tree, "jobs": jobs}


def _plain(tree: Any) -> Any:
    """Return a tree of the SDK as plain data, with bindings and addresses as in files."""
    if isinstance(tree, Mapping):
        plain = {str(key): _plain(value) for key, value in tree.items() if value is not None and value != {}}
        return plain["path"] if plain.keys() == {"path"} and "${{parent." in plain["path"] else plain
    if isinstance(tree, (list, tuple)):
        return [_plain(each) for each in tree]
    if isinstance(tree, str):
        return re.sub(r"^azureml:(?=[a-z]+://)", "", str(tree))
    return tree if isinstance(tree, (bool, int, float)) else str(tree)
