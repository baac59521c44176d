"""Read the records of a job's processes, which the component record_launch writes, and make them comparable.

Ids, addresses and folders differ between any two runs. Each is replaced by a placeholder such as ``<run id>``, so that
only differences of the platforms remain.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from allranks.contract.world import detect
from allranks.errors import InputError, Problem
from allranks_lab.verification.anonymous import anonymous, longest_first

_FILE = re.compile(r"rank-(\d+)(?:\..*)?\.json")

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
"""Variables whose values are ids of the run or the workspace. Only names, and where the ids recur, are compared."""

_OF_MACHINE = re.compile(
    r"(?:PATH|PWD|OLDPWD|HOME|SHLVL|_|LANG|LANGUAGE|LC_\w+|TERM|SHELL|HOSTNAME|LOGNAME|USER|MAIL|TMPDIR|DISPLAY|TZ"
    r"|(?:https?|no|all|ftp)_proxy|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|SSL_CERT_(?:FILE|DIR)|OMP_NUM_THREADS"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|VIRTUAL_ENV\w*|CONDA\w*|PYTHON\w*|PYENV\w*|MANPATH|XDG_\w+|SSH_\w+|ALLRANKS_\w+"
    r"|HF_HOME|HF_HUB_OFFLINE|TORCH_HOME|CUDA_\w+|NVIDIA_\w+)",
    re.IGNORECASE,
)
"""Variables of an image, a shell or a user, which the platform does not decide."""

_OF_LAUNCHER = re.compile(r"OMPI_(?!COMM_WORLD_)\w+|PMIX_\w+|PRTE_\w+|OPAL_\w+|PMI_\w+|UCX_\w+|RAY_(?!ADDRESS$)\w+")
"""Variables in which Open MPI and Ray keep their own state. OMPI_COMM_WORLD_* and RAY_ADDRESS are for programs."""

_PORT = re.compile(r"\d{4,5}")
_FREE_PORT = re.compile(r"(?<=[\d>]):\d{4,5}\b")
_FREE_PORTS = ("TF_CONFIG", "RAY_ADDRESS")
"""Variables with ports that differ in every run. The one in AZ_BATCH_MASTER_NODE is always the same."""
_OF_HOSTS = re.compile(r"MASTER_(?:ADDR|NODE|IP)|_LIST$|HOSTS?$|RAY_ADDRESS|DISTRIBUTED_CONFIG")
_NAME_AND_PORT = re.compile(r"(?<![<\w./-])(?!localhost\b)[A-Za-z][\w.-]*(?=:\d{2,5}\b)")
_COMMON_USERS = ("", "root", "nobody")


@dataclass(frozen=True, order=True)
class Fact:
    """A property of a process. kind: a key of kinds.KINDS"""

    kind: str
    name: str


READABLE = Fact("rank", "readable")
"""Whether the runtime can read a rank from the variables. If not, the process has no other facts of the kind rank."""

Facts = Mapping[Fact, str]
"""The facts of one process, in a form that is equal for two runs on the same platform."""


def read(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the records of all processes, in the order of their ranks, which are under the key ``rank``.

    Raise InputError if there are none, or one cannot be read.
    """
    records = []
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
        records.append({**record, "rank": int(match[1])})
    if not records:
        raise InputError(Problem(str(folder), "it has no records of ranks", "rank-0.json and so on"))
    return tuple(sorted(records, key=lambda record: record["rank"]))


def facts(records: Sequence[Mapping[str, Any]]) -> dict[int, Facts]:
    """Return the facts of each rank, without variables of the machine and of the launcher.

    Use the first of several processes with the same rank.
    """
    hosts = _hosts(records)
    return {
        record["rank"]: dict(_facts_of(record, _placeholders(record, hosts), hosts)) for record in reversed(records)
    }


def _facts_of(
    record: Mapping[str, Any], placeholders: Mapping[str, str], hosts: Mapping[str, str]
) -> Iterator[tuple[Fact, str]]:
    def comparable(value: Any) -> str:
        return anonymous(value if isinstance(value, str) else json.dumps(value), placeholders)

    yield from _contract_values(record["variables"], comparable)
    for name, value in record["variables"].items():
        if not _OF_MACHINE.fullmatch(name) and not _OF_LAUNCHER.fullmatch(name):
            yield Fact("variable", name), _normalize_variable(name, value, comparable)
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
        is_personal = name == "name" and value not in _COMMON_USERS
        yield Fact("user", name), "<user>" if is_personal else comparable(value)
    for name, value in record.get("limits", {}).items():
        yield Fact("limit", name), comparable(value)
    instance = record.get("instance", {})
    yield Fact("instance", "hostname"), f"<{hosts.get(instance.get('hostname', ''), 'unknown')}>"
    yield Fact("instance", "its own name resolves"), json.dumps(bool(instance.get("address")))
    for name, value in instance.get("masters resolve", {}).items():
        yield Fact("instance", f"{name} resolves"), comparable(value)
    if "processors" in instance:
        yield Fact("machine", "processors"), comparable(instance["processors"])
    for name, value in record.get("process", {}).items():
        if name == "python":
            yield Fact("image", "Python"), ".".join(str(value).split(".")[:2])
        else:
            yield Fact("process", name), comparable(value)
    for name, value in record.get("packages", {}).items():
        # Without the build after "+", which is cpu here and CUDA's there.
        yield Fact("image", f"package {name}"), str(value).partition("+")[0]


def _contract_values(variables: Mapping[str, str], comparable: Callable[[Any], str]) -> Iterator[tuple[Fact, str]]:
    """Yield the values that the runtime reads from the variables of a process."""
    try:
        env = asdict(detect(variables))
    except InputError as error:
        yield READABLE, comparable(str(error.problems[0]).partition("\n")[0])
        return
    yield READABLE, "yes"
    for name, value in env.items():
        if name == "master_addr":
            yield Fact("rank", name), _without_hosts(comparable(value or "none"))
        elif name != "master_port":  # free, and compared where the variable is
            yield Fact("rank", name), comparable(value)


def _normalize_variable(name: str, value: str, comparable: Callable[[Any], str]) -> str:
    if name in _IDS:
        return f"<{_IDS[name]}>"
    if name == "MASTER_PORT" and _PORT.fullmatch(value):
        return "<port>"
    shown = _NAME_AND_PORT.sub("<a name>", comparable(_normalize(value)))
    if _OF_HOSTS.search(name):
        shown = _without_hosts(shown)
    return _FREE_PORT.sub(":<port>", shown) if name in _FREE_PORTS else shown


def _without_hosts(value: str) -> str:
    """Return a list of hosts without names that do not belong to the job's instances."""
    return re.sub(r"(?<![<\w.-])(?!localhost\b|none\b)[A-Za-z][\w.-]*(?![\w>.-]|\":| \d*>)", "<a name>", value)


def _normalize(value: str) -> str:
    """Return JSON objects in one form, independent of the order of their keys."""
    if not value.startswith("{"):
        return value
    try:
        return json.dumps(json.loads(value), sort_keys=True)
    except ValueError:
        return value


def _hosts(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return a placeholder for the name and the address of each instance, in the order of the ranks."""
    hosts: dict[str, str] = {}
    number = 0
    listed = [each for record in records for each in record["variables"].get("AZ_BATCH_HOST_LIST", "").split(",")]
    for record in records:
        instance = record.get("instance", {})
        if instance.get("hostname") in hosts:
            continue
        hosts[instance.get("hostname", "")] = f"host {number}"
        if instance.get("address"):
            hosts[instance["address"]] = f"address {number}"
        number += 1
    # An instance may have no record.
    for place, address in enumerate(dict.fromkeys(filter(None, listed))):
        hosts.setdefault(address, f"address {place}")
    return hosts


def hostnames(records: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names and addresses of the instances."""
    return set(_hosts(records))


def _placeholders(record: Mapping[str, Any], hosts: Mapping[str, str]) -> dict[str, str]:
    """Return the placeholders of the texts that differ between two runs, the longest text first."""
    found = dict(hosts)
    for name, placeholder in _IDS.items():
        found.setdefault(record["variables"].get(name, ""), placeholder)
    for name, path in record["paths"].items():
        if not name.startswith("/"):
            found[path.get("path", "")] = name
    found.setdefault(record["user"].get("home of the user", ""), "home")
    return longest_first(found)
