"""What the processes of a job were given, as the component record_launch writes it: read, and made comparable.

Two runs never have the same ids, addresses and folders. Each is replaced by a placeholder such as ``<run id>``, so that
what remains is what the platform decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.secrets import redact

_FILE = re.compile(r"rank-(\d+)\.json")
_SHORTEST = 3
"""Minimum length of a text that is replaced wherever it occurs: shorter ones, such as a rank, occur by chance."""

_IDS = {
    "AZUREML_RUN_ID": "run id",
    "AZUREML_ROOT_RUN_ID": "root run id",
    "AZUREML_EXPERIMENT_ID": "experiment id",
    "AZUREML_ARM_PROJECT_NAME": "experiment",
    "AZUREML_ARM_SUBSCRIPTION": "subscription",
    "AZUREML_ARM_RESOURCEGROUP": "resource group",
    "AZUREML_ARM_WORKSPACE_NAME": "workspace",
    "AZUREML_SERVICE_ENDPOINT": "service endpoint",
    "AZUREML_WORKSPACE_ID": "workspace id",
    "MLFLOW_RUN_ID": "MLflow run",
    "MLFLOW_TRACKING_URI": "MLflow address",
    "MLFLOW_EXPERIMENT_NAME": "experiment",
    "MLFLOW_EXPERIMENT_ID": "MLflow experiment",
}
"""Variables whose values are ids of the run or of the workspace. Their names are compared, and where they recur."""

_OF_MACHINE = re.compile(
    r"(?:PATH|PWD|OLDPWD|HOME|SHLVL|_|LANG|LANGUAGE|LC_\w+|TERM|SHELL|HOSTNAME|LOGNAME|USER|MAIL|TMPDIR|DISPLAY|TZ"
    r"|(?:https?|no|all|ftp)_proxy|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|SSL_CERT_(?:FILE|DIR)|OMP_NUM_THREADS"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|VIRTUAL_ENV\w*|CONDA\w*|PYTHON\w*|PYENV\w*|MANPATH|XDG_\w+|SSH_\w+|ALLRANKS_\w+)",
    re.IGNORECASE,
)
"""Variables of an image, a shell or a user, which the platform does not decide."""

_OF_LAUNCHER = re.compile(r"OMPI_(?!COMM_WORLD_)\w+|PMIX_\w+|PRTE_\w+|OPAL_\w+|PMI_\w+|UCX_\w+")
"""Variables in which Open MPI keeps its own state. OMPI_COMM_WORLD_* are those that programs read."""

_PORT = re.compile(r"\d{4,5}")


@dataclass(frozen=True, order=True)
class Fact:
    """One thing that a process was given. kind: variable, argument, path, mount, user, limit, instance or process"""

    kind: str
    name: str


Facts = Mapping[Fact, str]
"""What one process was given, in a form that is the same for two runs under the same platform."""


def read(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the records of all ranks, in their order. Raise InputError if there are none, or one cannot be read."""
    records = {}
    for path in sorted(folder.rglob("rank-*.json")):
        match = _FILE.fullmatch(path.name)
        if match is None:
            continue
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            _ = record["variables"].items(), record["paths"].items(), record["user"].items()
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            found = f"cannot be read: {type(error).__name__}: {error}"
            raise InputError(Problem(str(path), found, "a record as the component record_launch writes it")) from None
        records[int(match[1])] = record
    if not records:
        raise InputError(Problem(str(folder), "there are no records of ranks", "rank-0.json and so on"))
    return tuple(record for _, record in sorted(records.items()))


def facts(records: Sequence[Mapping[str, Any]]) -> tuple[Facts, ...]:
    """Return what each process was given. Variables of the machine and of the launcher are left out."""
    hosts = _hosts(records)
    return tuple(dict(_facts_of(record, _placeholders(record, hosts), hosts)) for record in records)


def _facts_of(
    record: Mapping[str, Any], placeholders: Mapping[str, str], hosts: Mapping[str, str]
) -> Iterator[tuple[Fact, str]]:
    def comparable(value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value)
        for found, placeholder in placeholders.items():
            text = re.sub(rf"(?<![\w.-]){re.escape(found)}(?![\w-])", f"<{placeholder}>", text)
        return redact(text)

    for name, value in record["variables"].items():
        if _OF_MACHINE.fullmatch(name) or _OF_LAUNCHER.fullmatch(name):
            continue
        is_port = name == "MASTER_PORT" and _PORT.fullmatch(value)
        yield Fact("variable", name), "<port>" if is_port else f"<{_IDS[name]}>" if name in _IDS else comparable(value)
    for index, value in enumerate(record.get("arguments", ())):
        yield Fact("argument", str(index)), comparable(value)
    for name, path in record["paths"].items():
        for key, value in path.items():
            if key == "mounted at":
                yield Fact("mount", f"{name}: is a mount of its own"), json.dumps(value == path.get("path"))
            elif key != "path":
                kind = "mount" if key in ("file system", "mounted read-only", "bytes") else "path"
                yield Fact(kind, f"{name}: {key}"), comparable(value)
    for name, value in record["user"].items():
        yield Fact("user", name), comparable(value)
    for name, value in record.get("limits", {}).items():
        yield Fact("limit", name), comparable(value)
    instance = record.get("instance", {})
    yield Fact("instance", "hostname"), f"<{hosts.get(instance.get('hostname', ''), 'unknown')}>"
    yield Fact("instance", "its own name resolves"), json.dumps(bool(instance.get("address")))
    for name, value in instance.get("masters resolve", {}).items():
        yield Fact("instance", f"{name} resolves"), comparable(value)
    for name, value in record.get("process", {}).items():
        version = ".".join(str(value).split(".")[:2]) if name == "python" else comparable(value)
        yield Fact("process", name), version


def _hosts(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return a placeholder for the name and the address of each instance, in the order of the ranks."""
    hosts: dict[str, str] = {}
    number = 0
    for record in records:
        instance = record.get("instance", {})
        if instance.get("hostname") in hosts:
            continue
        hosts[instance.get("hostname", "")] = f"host {number}"
        if instance.get("address"):
            hosts[instance["address"]] = f"address {number}"
        number += 1
    return hosts


def _placeholders(record: Mapping[str, Any], hosts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that differ between two runs and what stands for each, the longest first."""
    found = dict(hosts)
    for name, placeholder in _IDS.items():
        found.setdefault(record["variables"].get(name, ""), placeholder)
    for name, path in record["paths"].items():
        if not name.startswith("/"):
            found[path.get("path", "")] = name
    found.setdefault(record["user"].get("home of the user", ""), "home")
    return {text: found[text] for text in sorted(found, key=len, reverse=True) if len(text) >= _SHORTEST}
