"""Jobs that were submitted: how they are, their logs, and their end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from allranks.azure.errors import service_errors
from allranks.azure.uploads import quiet_uploads
from allranks.secrets import redact

ENDED = frozenset({"Completed", "Failed", "Canceled"})
LOGS = "user_logs/"

_REUSED = "azureml.reusedrunid"


@dataclass(frozen=True)
class JobState:
    """How a job, or a step of one, is. Times are seconds since the epoch; None where it has not come to that.

    name:        its id
    status:      the service's word
    error:       what the service says of its failure
    reused_from: the step's job whose result stands in for it; "" where it runs itself
    steps:       of a pipeline, those that exist already
    """

    name: str
    status: str
    display_name: str = ""
    started: float | None = None
    ended: float | None = None
    error: str = ""
    reused_from: str = ""
    steps: tuple[JobState, ...] = ()


@dataclass(frozen=True)
class Logs:
    """The logs of a job: their names, such as ``user_logs/std_log.txt``, and where each is. Addresses are secrets."""

    addresses: Mapping[str, str] = field(default_factory=dict, repr=False)


def submit(client: Any, job: Any) -> tuple[str, str]:
    """Submits the SDK's job; gives its name and its page in the studio. Raises InputError, AzureError."""
    with service_errors("submitting the job"), quiet_uploads():
        created = client.jobs.create_or_update(job)
    return str(created.name), str(created.studio_url or "")


def state(client: Any, name: str, *, steps: bool = True) -> JobState:
    """How the job is now. steps: whether to ask for those too. Raises InputError, AzureError."""
    with service_errors(f"asking how {name} is"):
        runs = client.jobs._runs_operations
        # What the SDK's own stream asks; `jobs.get` knows neither times nor reasons.
        found = runs.get_run_details(name)
        children = list(_children(client, name)) if steps else []
    return JobState(
        name=name,
        status=str(found.status),
        started=_moment(found.start_time_utc),
        ended=_moment(found.end_time_utc),
        error=_error(found),
        steps=tuple(map(_step, children)),
    )


def logs(client: Any, name: str) -> Logs:
    """The logs that a job has so far. Raises InputError, AzureError."""
    with service_errors(f"asking for the logs of {name}"):
        found = client.jobs._runs_operations.get_run_details(name).log_files or {}
    return Logs({log: address for log, address in found.items() if log.startswith(LOGS) and _is_safe(log)})


def download(client: Any, found: Logs, folder: Path) -> None:
    """Brings the logs below the folder up to date; of one that is there in part, only the rest is asked for.

    A log is never left with half of an answer. Raises InputError, AzureError.
    """
    for log, address in found.addresses.items():
        path = folder / log
        with service_errors(f"downloading {log}"):
            _append(client, address, path)


def cancel(client: Any, name: str) -> None:
    """Asks the service to end the job; it does so in its own time. Raises InputError, AzureError."""
    with service_errors(f"canceling {name}"):
        client.jobs.begin_cancel(name)


def is_over(job: JobState) -> bool:
    """Whether nothing about it will change any more."""
    return job.status in ENDED


def _children(client: Any, name: str) -> Any:
    scope = client.jobs._operation_scope
    operation = client.jobs._runs_operations._operation
    return operation.get_child(scope.subscription_id, scope.resource_group_name, client.workspace_name, name)


def _step(run: Any) -> JobState:
    properties = run.properties or {}
    return JobState(
        name=str(run.run_id),
        status=str(run.status),
        display_name=str(run.display_name or run.name or run.run_id),
        started=_moment(run.start_time_utc),
        ended=_moment(run.end_time_utc),
        error=_error(run),
        reused_from=str(properties.get(_REUSED) or ""),
    )


def _error(run: Any) -> str:
    error = getattr(run.error, "error", None)
    return redact(str(getattr(error, "message", "") or ""))


def _moment(found: datetime | None) -> float | None:
    return found.timestamp() if found else None


def _is_safe(log: str) -> bool:
    """Whether the name stays below the folder that it is put into."""
    path = PurePosixPath(log)
    return not path.is_absolute() and ".." not in path.parts and re.search(r"[\x00\\]", log) is None


def _append(client: Any, address: str, path: Path) -> None:
    from azure.ai.ml._utils.utils import create_requests_pipeline_with_retry
    from azure.core.exceptions import HttpResponseError

    have = path.stat().st_size if path.exists() else 0
    pipeline = create_requests_pipeline_with_retry(requests_pipeline=client._requests_pipeline)
    answer = pipeline.get(address, headers={"Range": f"bytes={have}-"} if have else {})
    if answer.status_code == 416 or answer.status_code == 404:
        return  # nothing new, or nothing yet
    if answer.status_code not in (200, 206):
        raise HttpResponseError(response=answer)
    content = answer.body()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab" if answer.status_code == 206 else "wb") as file:
        file.write(content)
