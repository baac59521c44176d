"""Jobs and run history: the runs of the workspace folder, as Azure ML shows them.

What the client has sent of a job is in ``job.json`` of the run's folder. Runs that the command line has started have
none, and are shown by their record.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from allranks.history import datastores, locks, stored
from allranks.history.formatting import cause, reason
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.local import cancellation
from allranks.plan.graph import Plan
from allranks.plan.secrets import shown as without_secrets
from allranks_client.emulation import resource, timestamp, viewed
from allranks_client.local_assets import long_datastores
from allranks_client.local_service import STORAGE, LocalService, route
from allranks_client.messages import Answer, Request, not_found, user_error
from allranks_client.routing import API, MANAGEMENT
from allranks_client.storage import write_json

_STATUSES = {Status.INTERRUPTED: "Failed", Status.SKIPPED: "Canceled"}
"""The states that Azure ML does not have, with the closest of its own."""

_HISTORY = "/history/v1.0{workspace}"
_RESOLVERS = ("/data/v1.0{workspace}/dataversion", "/modelregistry/v1.0{workspace}/models")
_FILE = "job.json"
_LOG = "logs/azureml/executionlogs.txt"
"""The log of a pipeline, which `jobs.stream` prints."""

_POLL = 0.2
"""Seconds that a request for the state of a running job waits for its end."""

MODEL_TYPES = {"custom_model": "CustomModel", "mlflow_model": "MLFlowModel", "triton_model": "TritonModel"}


def _find(service: LocalService, name: str) -> tuple[RunRecord, StepRecord | None]:
    found = datastores.find(service.workspace, name)
    if found is None or found[0].submitted is not None:
        raise not_found(f"Run {name}")
    return found


def properties_of(record: RunRecord) -> dict[str, Any]:
    """Return what was sent of a job, with what was changed since."""
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


def outputs_of(job: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs of a job that was sent, with the mode that Azure ML uses by default."""
    return {name: {"mode": "ReadWriteMount", **output} for name, output in (job.get("outputs") or {}).items()}


def body(service: LocalService, request: Request, record: RunRecord) -> dict[str, Any]:
    name, sent = name_of(record), properties_of(record)
    page = Path(record.page).as_uri() if record.page else None
    addresses = {"Tracking": service.workspace.tracking_uri, "Studio": page}
    services = {kind: {"jobServiceType": kind, "endpoint": address} for kind, address in addresses.items()}
    outputs = outputs_of(sent)
    if sent["jobType"] != "Pipeline":
        uri = f"azureml://datastores/{datastores.ARTIFACTS}/ExperimentRun/dcid.{name}"
        outputs["default"] = {"jobOutputType": "uri_folder", "mode": "ReadWriteMount", "uri": uri}
    if sent["jobType"] == "Command":
        sent["resources"] = {"instanceCount": 1, "shmSize": "2g", **(sent.get("resources") or {})}
    properties = {
        **sent,
        "displayName": sent.get("displayName") or name,
        "experimentName": sent.get("experimentName") or "Default",
        "status": _status(record),
        "isArchived": bool(sent.get("isArchived")),
        "tags": sent.get("tags") or {},
        "properties": {**(sent.get("properties") or {}), **_best_trial(record)},
        "services": services,
        "outputs": outputs,
    }
    return resource(request.scope, f"/jobs/{name}", properties, created=record.created)


def _best_trial(record: RunRecord) -> dict[str, str]:
    """Return the property by which the SDK finds the best trial of a sweep, if the job is one that has ended."""
    sweep = datastores.only_step(record)
    best = re.match(r"trial (\d+) is the best", sweep.result) if sweep and sweep.kind == "sweep" else None
    return {"best_child_run_id": f"{name_of(record)}:{record.name}.trial[{best[1]}]"} if best else {}


def _status(item: RunRecord | StepRecord) -> str:
    return _STATUSES.get(item.status, item.status.value)


@route(MANAGEMENT, "GET", "{workspace}/jobs")
def list_jobs(service: LocalService, request: Request) -> Answer:
    """Return the jobs, the newest first, without the steps of pipelines."""
    records = [record for record in stored.runs(service.workspace) if record.submitted is None]
    return service.page(request, viewed(request, [body(service, request, record) for record in records]))


@route(MANAGEMENT, "GET", "{workspace}/jobs/{name}")
def get_job(service: LocalService, request: Request, name: str) -> Answer:
    record, step = _find(service, name)
    # Of a step, only run history knows more than the name.
    return Answer.of(resource(request.scope, f"/jobs/{name}", None) if step else body(service, request, record))


@route(MANAGEMENT, "PUT", "{workspace}/jobs/{name}")
def put_job(service: LocalService, request: Request, name: str) -> Answer:
    """Start a job, or change what describes an existing one."""
    properties = request.json.get("properties") or {}
    found = datastores.find(service.workspace, name)
    if found is not None and found[0].submitted is None:
        record = found[0]
        sent = properties_of(record)
        if found[1] is not None or sent["jobType"] != properties.get("jobType"):
            raise user_error(f"A job with the name {name} exists already.")
        changes = {key: properties.get(key) for key in ("tags", "displayName", "isArchived", "description")}
        _save(record, {**sent, **{key: value for key, value in changes.items() if value is not None}})
        return Answer.of(body(service, request, record))
    return Answer.of(body(service, request, start(service, name, properties)), 201)


def start(
    service: LocalService, name: str, properties: dict[str, Any] | None, plan: Plan | None = None, **options: Any
) -> RunRecord:
    """Start a job, and return its record.

    properties: what was sent of it; None for what its record has
    plan:       default: that of the job that this thread submits
    options:    those of the run, besides the client's
    """
    record = stored.run(service.workspace, service.submit(name, plan, **options))
    if properties:
        _save(record, properties)
    service.new_jobs.add(name)
    return record


def _save(record: RunRecord, properties: dict[str, Any]) -> None:
    write_json(Path(record.folder) / _FILE, without_secrets(properties))


@route(MANAGEMENT, "POST", "{workspace}/jobs/{name}/cancel")
def cancel_job(service: LocalService, request: Request, name: str) -> Answer:
    record, step = _find(service, name)
    item = step or record
    if item.status.ended:
        raise user_error(f"Run {name} is in a terminal state {_status(item)} and cannot be cancelled.")
    if step is not None:
        cancellation.cancel_nodes(service.workspace, record, [step.name])
    else:
        cancellation.cancel_run(service.workspace, record.id, patience=0.0)
    return get_cancellation(service, request, name)


@route(MANAGEMENT, "GET", "{workspace}/jobs/{name}/operationresults")
def get_cancellation(service: LocalService, request: Request, name: str) -> Answer:
    """Return 200 when the job has ended, else where to ask again."""
    record, step = _find(service, name)
    place = f"https://{MANAGEMENT}{request.scope}/jobs/{quote(name)}/operationresults?api-version=1"
    return Answer(200 if (step or record).status.ended else 202, headers={"Location": place, "Retry-After": "1"})


# Run history


@route(API, "GET", _HISTORY + "/runs/{name}")
def get_run(service: LocalService, request: Request, name: str) -> Answer:
    return Answer.of(_run(*_find(service, name)))


@route(API, "PATCH", _HISTORY + "/runs/{name}", _HISTORY + "/experiments/{experiment}/runs/{name}")
def change_run(service: LocalService, request: Request, name: str, experiment: str = "") -> Answer:
    """Change the description of a job, or archive it."""
    record, step = _find(service, name)
    if step is not None:
        raise user_error(f"Run {name} is a step of a pipeline and cannot be changed.")
    sent, change = properties_of(record), request.json
    for key in ("tags", "properties"):
        sent[key] = {**(sent.get(key) or {}), **(change.get(key) or {})}
    for key in ("displayName", "description"):
        sent[key] = change.get(key) or sent.get(key)
    if change.get("hidden") is not None:
        sent["isArchived"] = bool(change["hidden"])
    _save(record, sent)
    return Answer.of(_run(record, None))


@route(API, "GET", _HISTORY + "/runs/{name}/children")
def get_children(service: LocalService, request: Request, name: str) -> Answer:
    record, step = _find(service, name)
    above = step or datastores.only_step(record)
    prefix = f"{above.name}." if above else ""
    below = [each for each in record.steps if each is not above and each.name.startswith(prefix)]
    shown = [_run(record, each) for each in below if "." not in each.name.removeprefix(prefix)]
    return Answer.of({"value": shown, "continuationToken": None})


@route(API, "GET", _HISTORY + "/runs/{name}/details")
def get_details(service: LocalService, request: Request, name: str) -> Answer:
    """Return the state of a job and the places of its logs. Wait a little while it runs.

    The SDK prints the logs of a job only if it sees it running, which a job here may not last long enough for.
    """
    record, step = _find(service, name)
    is_new = name in service.new_jobs
    service.new_jobs.discard(name)
    if not (is_new or (step or record).status.ended):
        locks.wait(service.workspace.run_folder(record.id), _POLL)
        record, step = _find(service, name)
    run = _run(record, step)
    keys = ("runId", "status", "parentRunId", "startTimeUtc", "endTimeUtc", "error", "tags", "properties")
    details = {key: run[key] for key in keys} | ({"status": "Running"} if is_new else {})
    place = f"https://{service.account}.blob.core.windows.net/{datastores.ARTIFACTS}/ExperimentRun/dcid.{quote(name)}"
    logs = {log: f"{place}/{quote(log)}" for log in _logs(service, record, step)}
    return Answer.of({**details, "createdTimeUtc": run["createdUtc"], "warnings": [], "logFiles": logs})


@route(API, "POST", _HISTORY + "/rundata")
def get_run_data(service: LocalService, request: Request) -> Answer:
    run = _run(*_find(service, request.json["runId"]))
    return Answer.of({"runMetadata": run, "runDefinition": None, "jobSpecification": None})


@route(API, "GET", _HISTORY + "/runs/{name}/serviceinstances/{node}")
def get_services(service: LocalService, request: Request, name: str, node: str) -> Answer:
    _find(service, name)
    return Answer.of({"instances": {}})


@route(API, "POST", *(f"{path}/batchGetResolvedUris" for path in _RESOLVERS))
def resolve_outputs(service: LocalService, request: Request) -> Answer:
    """Return the places of outputs, for the ids that `_outputs` gives them."""
    values = {}
    for identity in request.json.get("values") or []:
        kind, job, output = identity.removeprefix(_OUTPUT).split("/")
        uri = f"{long_datastores(request.scope)}{datastores.BLOBS}/paths/azureml/{job}/{output}/"
        values[identity] = {"uri" if request.path.startswith("/data/") else "path": uri, "type": kind}
    return Answer.of({"values": values})


_OUTPUT = "azureml_output:"


def _run(record: RunRecord, step: StepRecord | None) -> dict[str, Any]:
    """Return a job, or a step of a pipeline, as run history shows it."""
    sent, root = properties_of(record), name_of(record)
    item, name, parent = step or record, root, None
    properties: dict[str, str] = dict(sent.get("properties") or {})
    if step:
        name, parent = f"{root}:{step.name}", f"{root}:{step.name.rpartition('.')[0]}".rstrip(":")
        properties = {"azureml.moduleName": step.component, "stepName": step.name}
        if step.reused_from:
            properties |= {"azureml.isreused": "true", "azureml.reusedpipelinerunid": step.reused_from}
    is_pipeline = sent["jobType"] == "Pipeline" and step is None
    return {
        "runId": name,
        "rootRunId": root,
        "parentRunId": parent,
        "experimentId": str(uuid.uuid5(uuid.NAMESPACE_OID, sent.get("experimentName") or "Default")),
        "displayName": step.name if step else sent.get("displayName") or root,
        "status": _status(item),
        "createdUtc": timestamp(record.created),
        "startTimeUtc": _time(step.started if step else record.created),
        "endTimeUtc": _time(item.ended),
        "tags": {} if step else sent.get("tags") or {},
        "properties": properties,
        "hidden": bool(sent.get("isArchived")),
        "runType": "azureml.StepRun" if step else "azureml.PipelineRun" if is_pipeline else "command",
        "outputs": dict(_outputs(record, step, name)),
        "error": _error(item),
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)


def _outputs(record: RunRecord, step: StepRecord | None, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    step = step or datastores.only_step(record)
    types = {port.name: port.type for port in step.outputs} if step else dict.fromkeys(record.outputs, "uri_folder")
    for output, declared in types.items():
        kind = MODEL_TYPES.get(declared, declared if declared in ("uri_folder", "mltable") else "uri_file")
        yield output, {"assetId": f"{_OUTPUT}{kind}/{name}/{output}", "type": kind}


def _error(item: RunRecord | StepRecord) -> dict[str, Any] | None:
    if item.status not in (Status.FAILED, Status.INTERRUPTED):
        return None
    verdict = item.verdict
    message = "it failed"
    if item.status is Status.INTERRUPTED:
        message = "the engine of the run was killed; allranks resume continues it"
    if verdict is not None:
        head = f"step {verdict.step}: {cause(verdict) or 'failed'}"
        message = "\n".join(filter(None, (head, reason(verdict), *verdict.tail[-20:])))
    return {"error": {"code": "UserError", "message": message, "details": []}, "time": _time(item.ended)}


def _logs(service: LocalService, record: RunRecord, step: StepRecord | None) -> list[str]:
    """Return the paths of the logs of a job, below its artifacts. A pipeline has one, which is written here."""
    folder = datastores.output_path(service.workspace, name_of(record) + (f":{step.name}" if step else ""), "")
    assert folder is not None
    if folder.name == datastores.PIPELINE_ARTIFACTS:
        (folder / _LOG).parent.mkdir(parents=True, exist_ok=True)
        (folder / _LOG).write_text(_execution_log(record), encoding="utf-8")
        return [_LOG]
    return sorted(log.relative_to(folder).as_posix() for log in (folder / "user_logs").rglob("*.txt"))


@route(STORAGE, "GET", "/{container}/ExperimentRun/dcid.{job}/{log:path}")
def read_log(service: LocalService, request: Request, container: str, job: str, log: str) -> Answer:
    """Return a log of a job, whose address `get_details` gives."""
    path = datastores.path_of(service.workspace, datastores.ARTIFACTS, f"ExperimentRun/dcid.{job}/{log}")
    if path is None:
        raise not_found(f"Log {log}")
    text = path.read_text(encoding="utf-8", errors="replace")
    return Answer(body=text.encode(), headers={"Content-Type": "text/plain; charset=utf-8"})


def _execution_log(record: RunRecord) -> str:
    """Return the log of a pipeline: a line for each step that started or ended, in the order of time."""
    lines: list[tuple[float, str]] = []
    for step in record.steps:
        name = f"{step.name} ({name_of(record)}:{step.name})"
        if step.started:
            lines.append((step.started, f"Submitting run {name}"))
        if step.ended:
            how = f"reused from run {step.reused_from}" if step.reused_from else _status(step)
            lines.append((step.ended, f"Completing run {name}: {how}"))
    return "".join(f"[{timestamp(moment)[:19]}Z] {text}\n" for moment, text in sorted(lines))
