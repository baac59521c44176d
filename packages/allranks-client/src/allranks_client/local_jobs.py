"""The runs of a workspace folder as jobs.

The body that the client has sent is in ``job.json`` of the run's folder. Runs that were started on the command line
have no such file, and are shown by their record.
"""

import json
import re
from pathlib import Path
from typing import Any

from allranks.history import datastores
from allranks.history.formatting import cause, reason
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.plan.secrets import shown as without_secrets
from allranks.workspace import Workspace
from allranks_client.emulation import Job, timestamp
from allranks_client.messages import not_found
from allranks_client.storage import write_json

_STATUSES = {Status.INTERRUPTED: "Failed", Status.SKIPPED: "Canceled"}
"""States that Azure ML does not have, each with the closest one of Azure ML."""

_FILE = "job.json"
_LOG = "logs/azureml/executionlogs.txt"
"""The log of a pipeline, which `jobs.stream` prints."""


def properties_of(record: RunRecord) -> dict[str, Any]:
    """Return the properties of a job as sent, with later changes."""
    file = Path(record.folder) / _FILE
    if file.exists():
        return dict(json.loads(file.read_text(encoding="utf-8")))
    properties: dict[str, Any] = {"jobType": "Pipeline", "jobs": {}, "settings": {}}
    if (step := datastores.only_step(record)) and step.kind == "command":
        properties = {"jobType": "Command", "command": "", "environmentId": ""}
    inputs = {name: {"jobInputType": "literal", "value": value} for name, value in record.inputs.items()}
    return {**properties, "displayName": record.display_name, "inputs": inputs, "tags": {}, "properties": {}}


def name_of(record: RunRecord) -> str:
    return record.job_name or record.id


def job_of(record: RunRecord, step: StepRecord | None = None) -> Job:
    """Return the run, or one of its steps, as a job."""
    sent, root, item = properties_of(record), name_of(record), step or record
    above = step or datastores.only_step(record)
    prefix = f"{above.name}." if above else ""
    below = [each.name for each in record.steps if each is not above and each.name.startswith(prefix)]
    children = [f"{root}:{name}" for name in below if "." not in name.removeprefix(prefix)]
    types = {port.name: port.type for port in above.outputs} if above else dict.fromkeys(record.outputs, "uri_folder")
    name = f"{root}:{step.name}" if step else root
    job = Job(
        name,
        None if step else sent,
        status=status_of(item),
        children=children,
        created=record.created,
        started=step.started if step else record.created,
        ended=item.ended,
        error=_error(item),
        archived=bool(sent.get("isArchived")),
        outputs={key: (kind, datastores.BLOBS, f"azureml/{name}/{key}/") for key, kind in types.items()},
    )
    if step is None:
        job.display_name = sent.get("displayName") or root
        job.tags, job.run_properties = sent.get("tags") or {}, _best_trial(record)
        return job
    job.display_name, job.root = step.name, root
    job.parent = f"{root}:{step.name.rpartition('.')[0]}".rstrip(":")
    job.run_properties = {"azureml.moduleName": step.component, "stepName": step.name}
    if step.reused_from:
        job.run_properties |= {"azureml.isreused": "true", "azureml.reusedpipelinerunid": step.reused_from}
    return job


def _best_trial(record: RunRecord) -> dict[str, str]:
    """Return the property that names the best trial for the SDK, if the job is a sweep that has ended."""
    sweep = datastores.only_step(record)
    best = re.match(r"trial (\d+) is the best", sweep.result) if sweep and sweep.kind == "sweep" else None
    return {"best_child_run_id": f"{name_of(record)}:{record.name}.trial[{best[1]}]"} if best else {}


def status_of(item: RunRecord | StepRecord) -> str:
    return _STATUSES.get(item.status, item.status.value)


def find(workspace: Workspace, name: str) -> tuple[RunRecord, StepRecord | None]:
    """Return the run of a job, and the step if the job is one of a pipeline. Raise Refusal if there is no such job."""
    found = datastores.find(workspace, name)
    if found is None or found[0].submitted is not None:
        raise not_found(f"Run {name}")
    return found


def save(record: RunRecord, properties: dict[str, Any]) -> None:
    """Save the properties of a job as sent."""
    write_json(Path(record.folder) / _FILE, without_secrets(properties))


def _error(item: RunRecord | StepRecord) -> str:
    if item.status is Status.INTERRUPTED:
        return "the engine of the run was killed; allranks resume continues it"
    if item.status is not Status.FAILED:
        return ""
    if (verdict := item.verdict) is None:
        return "it failed"
    head = f"step {verdict.step}: {cause(verdict) or 'failed'}"
    return "\n".join(filter(None, (head, reason(verdict), *verdict.tail[-20:])))


def logs(workspace: Workspace, job: str) -> list[str]:
    """Return the paths of the logs of a job, below its artifacts. A pipeline has one, which this function writes."""
    record, _ = find(workspace, job)
    folder = datastores.output_path(workspace, job, "")
    assert folder is not None
    if folder.name == datastores.PIPELINE_ARTIFACTS:
        (folder / _LOG).parent.mkdir(parents=True, exist_ok=True)
        (folder / _LOG).write_text(_execution_log(record), encoding="utf-8")
        return [_LOG]
    return sorted(log.relative_to(folder).as_posix() for log in (folder / "user_logs").rglob("*.txt"))


def _execution_log(record: RunRecord) -> str:
    """Return the log of a pipeline: a line for each step that started or ended, in the order of time."""
    lines: list[tuple[float, str]] = []
    for step in record.steps:
        name = f"{step.name} ({name_of(record)}:{step.name})"
        if step.started:
            lines.append((step.started, f"Submitting run {name}"))
        if step.ended:
            how = f"reused from run {step.reused_from}" if step.reused_from else status_of(step)
            lines.append((step.ended, f"Completing run {name}: {how}"))
    return "".join(f"[{timestamp(moment)[:19]}Z] {text}\n" for moment, text in sorted(lines))
