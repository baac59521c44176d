"""Write a pipeline as text in another form: Python, YAML, the request that would submit it, or what would run."""

import contextlib
import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from allranks.azure import dsl
from allranks.cli.main import app
from allranks.errors import InputError, Problem
from allranks.plan.reader import opened
from allranks.sdk import internals


def exported(target: str, file: Path, form: str) -> str:
    """Return a pipeline in a form. target: the file, with the name of one of several pipelines

    Raise InputError, also for a pipeline that the form cannot describe.
    """
    match form:
        case "python" | "yaml" if (form == "python") == (file.suffix == ".py"):
            return file.read_text(encoding="utf-8", errors="replace")
        case "python":
            return _python(target, file)
        case "yaml":
            tree, _ = _tree(target, file.parent)
            text: str = yaml.safe_dump(tree, sort_keys=False, width=120, allow_unicode=True)
            return text
        case "request":
            return _printed("submit", target, "--dry-run")
        case "plan":
            return _printed("run", target, "--dry-run")
        case "submit":
            return f"allranks submit {os.path.relpath(target)} --compute COMPUTE\n"
    raise InputError(Problem(f"form {form}", "there is no such form", "python, yaml, request, plan or submit"))


def _printed(*command: str) -> str:
    """Return what a command of `allranks` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        app(list(command), standalone_mode=False)
    return text.getvalue()


def _python(target: str, file: Path) -> str:
    tree, specs = _tree(target, file.parent)
    try:
        return dsl.text(dsl.with_types(tree, specs), specs)
    except dsl.NotExpressible as error:
        raise InputError(Problem(file.name, f"Python cannot describe it: {error}", "components in files")) from None


def _tree(target: str, folder: Path) -> tuple[dict[str, Any], dict[str, Mapping[str, Any]]]:
    """Return a job as the tree of a YAML file in a folder, and the specs of components by the references to them."""
    with opened(target, {}) as job:
        tree: dict[str, Any] = json.loads(json.dumps(internals.as_dict(job.job), default=str))
        specs: dict[str, Mapping[str, Any]] = {}
        _refer(tree, getattr(job.job, "jobs", {}), folder, specs)
    return tree, specs


def _refer(
    tree: dict[str, Any], entities: Mapping[str, Any], folder: Path, specs: dict[str, Mapping[str, Any]]
) -> None:
    """Replace the components of a pipeline's nodes by references to their files, and bindings by their texts."""
    for name, node in tree.get("jobs", {}).items():
        for side in ("inputs", "outputs"):
            ports = node.get(side) or {}
            for port, value in ports.items():
                if isinstance(value, dict) and isinstance(path := value.get("path"), str):
                    value["path"] = re.sub(r"^azureml:(?=[./])", "", path)  # which the SDK adds to local paths
                    ports[port] = value["path"] if [*value] == ["path"] else value
        component = internals.component(entities[name])
        key = "trial" if node.get("type") == "sweep" else "component"
        file = internals.source_path(component) if component is not None and not isinstance(component, str) else ""
        if file.endswith((".yml", ".yaml")) and isinstance(node.get(key), dict):
            reference = f"./{Path(os.path.relpath(file, folder)).as_posix()}"
            specs[reference], node[key] = node[key], reference
        elif isinstance(node.get(key), dict) and "jobs" in node[key]:
            _refer(node[key], getattr(component, "jobs", {}), folder, specs)
