"""Requests about jobs that only `LocalClient`'s service answers: cancel runs, wait for them, and read their logs."""

from urllib.parse import quote

from allranks.history import datastores, locks
from allranks.local import cancellation
from allranks_client import local_jobs, run_history
from allranks_client.local_service import STORAGE, LocalService, route
from allranks_client.messages import Answer, Request, not_found, user_error
from allranks_client.routing import API, MANAGEMENT
from allranks_client.run_history import HISTORY

_POLL = 0.2
"""Seconds that a request for the state of a running job waits for its end."""


@route(MANAGEMENT, "POST", "{workspace}/jobs/{name}/cancel")
def cancel_job(service: LocalService, request: Request, name: str) -> Answer:
    record, step = local_jobs.find(service.workspace, name)
    item = step or record
    if item.status.ended:
        raise user_error(f"Run {name} is in a terminal state {local_jobs.status_of(item)} and cannot be cancelled.")
    if step is not None:
        cancellation.cancel_nodes(service.workspace, record, [step.name])
    else:
        cancellation.cancel_run(service.workspace, record.id, patience=0.0)
    return get_cancellation(service, request, name)


@route(MANAGEMENT, "GET", "{workspace}/jobs/{name}/operationresults")
def get_cancellation(service: LocalService, request: Request, name: str) -> Answer:
    """Return 200 when the job has ended, else the address for the next request."""
    record, step = local_jobs.find(service.workspace, name)
    place = f"https://{MANAGEMENT}{request.scope}/jobs/{quote(name)}/operationresults?api-version=1"
    return Answer(200 if (step or record).status.ended else 202, headers={"Location": place, "Retry-After": "1"})


@route(API, "GET", HISTORY + "/runs/{name}/details")
def get_details(service: LocalService, request: Request, name: str) -> Answer:
    """Wait a little while the job runs.

    The SDK prints the logs of a job only if it sees it running, and a job here may be too short for that.
    """
    record, step = local_jobs.find(service.workspace, name)
    is_new = name in service.new_jobs
    service.new_jobs.discard(name)
    if not (is_new or (step or record).status.ended):
        locks.wait(service.workspace.run_folder(record.id), _POLL)
    found = run_history.details(service, service.job(name))
    return Answer.of(found | ({"status": "Running"} if is_new else {}))


@route(STORAGE, "GET", "/{container}/ExperimentRun/dcid.{job}/{log:path}")
def read_log(service: LocalService, request: Request, container: str, job: str, log: str) -> Answer:
    """Return the log of a job at an address from `get_details`."""
    path = datastores.path_of(service.workspace, datastores.ARTIFACTS, f"ExperimentRun/dcid.{job}/{log}")
    if path is None:
        raise not_found(f"Log {log}")
    text = path.read_text(encoding="utf-8", errors="replace")
    return Answer(body=text.encode(), headers={"Content-Type": "text/plain; charset=utf-8"})
