"""The service as a test sees it: what is stored, what was asked, what goes wrong."""

import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from allranks_client import emulation
from allranks_client.emulation import Service
from allranks_client.messages import Answer, Refusal, Request
from fake import (
    blobs,
    computes,
    jobs,
    names,
    operations,
    routing,
    schedules,
    workspaces,
)
from fake.assets import Assets
from fake.blobs import Blobs
from fake.computes import Compute
from fake.faults import Fault, Faults
from fake.jobs import Job
from fake.operations import Operation
from fake.server import IDENTITY, Server

ROUTES = (blobs, computes, jobs, operations, schedules, workspaces)
"""The modules whose import fills the table of routes."""


class FakeAzure(Service):
    """One workspace with a registry beside it.

    assets:      codes, environments, components, data and models of the workspace; registry: those of the registry
    jobs:        by name
    schedules:   REST bodies by name
    computes:    by name
    requests:    (method, path, status) of what was asked, sign-in left out
    sign_ins:    the resources for which tokens were asked
    strangers:   hosts that a client wanted and that are not Azure's: always to be empty
    unknown:     requests for which the fake has no route: always to be empty
    secrets:     every token, key and SAS that was handed out
    core_limits: cores by family of sizes; of any other family there are 100. total_cores, low_priority_cores: of the
                 region
    signs_in:    whether the identity endpoint gives tokens
    allows:      whether a token is good for anything
    history_lag: how many requests run history answers with 404 before it knows a new job
    operation_error: how the next long-running operation fails
    page_size:   how many items a list has at most before its next page
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.lock = threading.RLock()
        self.faults = Faults()
        self.requests: list[tuple[str, str, int]] = []
        self.sign_ins: list[str] = []
        self.strangers: list[str] = []
        self.unknown: list[tuple[str, str]] = []
        self.identity_header = secrets.token_hex(16)
        self.tokens: dict[str, str] = {}
        self.secrets: set[str] = {self.identity_header}
        self.signs_in = self.allows = True
        self.core_limits: dict[str, int] = {}
        self.total_cores, self.low_priority_cores = 1000, 100
        self.history_lag = 0
        self.operations: dict[str, Operation] = {}
        self.operation_error: Refusal | None = None
        self.assets = Assets(self, names.WORKSPACE_PATH)
        self.registry = Assets(self, f"azureml://registries/{names.REGISTRY}")
        self.blobs = Blobs(self.secrets)
        self.jobs: dict[str, Job] = {}
        self.schedules: dict[str, dict[str, Any]] = {}
        self.computes = {
            compute.name: compute
            for compute in (
                Compute("cpu-cluster", "Standard_D4s_v5", 4),
                Compute("gpu-cluster", "Standard_NC96ads_A100_v4", 4),
            )
        }

    account = names.ACCOUNT
    containers = workspaces.DATASTORES

    def assets_of(self, request: Request) -> Assets:
        return self.registry if request.registry else self.assets

    def submitted_jobs(self) -> Iterator[Job]:
        return (job for job in reversed(self.jobs.values()) if not job.parent)

    def has_job(self, name: str) -> bool:
        return name in self.jobs

    def job(self, name: str) -> Job:
        return jobs.named(self, name)

    def start_job(self, name: str, properties: dict[str, Any]) -> Job:
        return jobs.submit(self, name, properties)

    def save_job(self, job: emulation.Job) -> None:
        """A job is changed where it is."""

    def job_pages(self, job: emulation.Job) -> dict[str, str | None]:
        tracking = f"azureml://{names.API}/mlflow/v1.0{names.WORKSPACE_PATH}?"
        return {"Studio": self.jobs[job.name].url(), "Tracking": tracking}

    def logs(self, job: emulation.Job) -> dict[str, str]:
        place = f"https://{names.BLOBS}/{jobs.ARTIFACTS}/{jobs.artifacts(job.name)}"
        return {log: f"{place}/{log}?{self.blobs.sas()}" for log in sorted(self.jobs[job.name].logs)}

    def signature(self) -> str:
        return self.blobs.sas()

    def account_key(self) -> str:
        return self.blobs.key

    @property
    def components(self) -> dict[tuple[str, str], dict[str, Any]]:
        """REST bodies of the workspace's components, by name and version."""
        return self.assets.of("components")

    @property
    def environments(self) -> dict[tuple[str, str], dict[str, Any]]:
        return self.assets.of("environments")

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a process finds the fake, signs in and knows the workspace."""
        return {
            "HTTPS_PROXY": self.server.url,
            "https_proxy": self.server.url,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            "REQUESTS_CA_BUNDLE": str(self.server.certificate),
            "IDENTITY_ENDPOINT": f"{self.server.url}{IDENTITY}",
            "IDENTITY_HEADER": self.identity_header,
            # The chain would ask programs and addresses of this machine before.
            "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
            # The SDK remembers on disk, for days, which components a workspace has; each of ours begins empty.
            "AZURE_ML_DISABLE_ON_DISK_CACHE": "true",
            "AZUREML_ARM_SUBSCRIPTION": names.SUBSCRIPTION,
            "AZUREML_ARM_RESOURCEGROUP": names.GROUP,
            "AZUREML_ARM_WORKSPACE_NAME": names.WORKSPACE,
            "AZUREML_RUN_POLLING_INTERVAL_MIN": "1",
            "AZUREML_RUN_POLLING_INTERVAL_MAX": "1",
        }

    def client(self, registry: str | None = None, **options: Any) -> Any:
        """The real MLClient, in this process, which must have `environment`."""
        from azure.ai.ml import MLClient
        from azure.identity import DefaultAzureCredential

        if registry:
            return MLClient(DefaultAzureCredential(), registry_name=registry, **options)
        return MLClient(DefaultAzureCredential(), names.SUBSCRIPTION, names.GROUP, names.WORKSPACE, **options)

    def fail(
        self,
        pattern: str,
        status: int = 503,
        times: int = 1,
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        torn: bool = False,
        delay: float = 0.0,
        method: str | None = None,
    ) -> None:
        """The next `times` requests whose host and path match the regular expression go wrong, see `Fault`."""
        content = body.encode() if isinstance(body, str) else body
        found = re.compile(pattern, re.IGNORECASE)
        self.faults.add(Fault(found, method, status, dict(headers or {}), content, torn, delay), times)

    def clear(self) -> None:
        """Forgets the recorded requests."""
        self.requests.clear()

    def answer(self, request: Request) -> Answer:
        """Raises Refusal."""
        with self.lock:
            return routing.answer(self, request)
