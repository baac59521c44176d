"""The datastores of a workspace folder: files that clients upload, and the outputs and logs of its runs.

Paths are those of Azure ML: ``azureml/JOB/OUTPUT/...`` in `BLOBS` is an output of a job, and
``ExperimentRun/dcid.JOB/...`` in `ARTIFACTS` are its logs and its ./outputs. A step of a pipeline is the job
``JOB:STEP``.
"""

import re
from pathlib import Path, PurePosixPath

from allranks.errors import InputError
from allranks.history import stored
from allranks.history.records import RunRecord, StepRecord
from allranks.workspace import Workspace

BLOBS, ARTIFACTS = "workspaceblobstore", "workspaceartifactstore"
NAMES = (BLOBS, ARTIFACTS)

PIPELINE_ARTIFACTS = "pipeline-artifacts"
"""The folder of a run with the pipeline's own logs. No step has such a name."""

_JOB_OUTPUT = re.compile(r"azureml://jobs/(?P<job>[^/]+)/outputs/(?P<output>[^/]+)(?:/paths)?(?:/(?P<path>.*))?")


def folder(workspace: Workspace, name: str) -> Path:
    """Return the folder of uploaded files of a datastore, or of another container."""
    return workspace.root / "datastores" / name


def path_of(workspace: Workspace, datastore: str, path: str) -> Path | None:
    """Return the file or folder at a path of a datastore; None if there is none."""
    parts = PurePosixPath(path).parts
    if ".." in parts:
        return None
    if datastore == ARTIFACTS and parts[:1] == ("ExperimentRun",) and len(parts) > 1:
        found = output_path(workspace, parts[1].removeprefix("dcid."), "")
        return _existing(found, parts[2:])
    if datastore == BLOBS and parts[:1] == ("azureml",) and len(parts) > 2:
        return _existing(output_path(workspace, parts[1], parts[2]), parts[3:])
    return _existing(folder(workspace, datastore), parts)


def path_of_uri(workspace: Workspace, uri: str) -> Path | None:
    """Return the path of ``azureml://jobs/JOB/outputs/OUTPUT/paths/PATH``; None for another URI, or if there is none.

    The output ``artifacts`` or ``default`` is the job's own folder, which has logs and ./outputs.
    """
    match = _JOB_OUTPUT.fullmatch(uri)
    if match is None or ".." in (parts := PurePosixPath(match["path"] or "").parts):
        return None
    output = "" if match["output"] in ("artifacts", "default") else match["output"]
    return _existing(output_path(workspace, match["job"], output), parts)


def output_path(workspace: Workspace, job: str, output: str) -> Path | None:
    """Return the path of an output of a job; "" for its folder of logs and artifacts. None if there is none."""
    found = find(workspace, job)
    if found is None:
        return None
    record, step = found
    step = step or only_step(record)
    if not output:
        return Path(step.folder) if step else Path(record.folder, PIPELINE_ARTIFACTS)
    if step is not None:
        return next((Path(port.path) for port in step.outputs if port.name == output), None)
    path = record.outputs.get(output)
    return Path(path) if path else None


def only_step(record: RunRecord) -> StepRecord | None:
    """Return the step of a run that is a standalone command job or sweep; None for a pipeline."""
    first = record.steps[0] if record.steps else None
    is_job = first and first.name == record.name and (first.kind == "sweep" or len(record.steps) == 1)
    return first if is_job and first and first.kind in ("command", "sweep") else None


def find(workspace: Workspace, job: str) -> tuple[RunRecord, StepRecord | None] | None:
    """Return the run of a job, and the step if the job is one of a pipeline; None if there is no such job."""
    name, _, path = job.partition(":")
    try:
        record = stored.run(workspace, name)
    except InputError:
        return None
    if name not in (record.id, record.job_name):
        return None  # a similar name
    step = record.find(path) if path else None
    return None if path and step is None else (record, step)


def _existing(base: Path | None, parts: tuple[str, ...]) -> Path | None:
    return path if base and (path := base.joinpath(*parts)).exists() else None
