"""Read a step of any job on Azure ML as a plan, and download the code and data that it names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.azure import runs
from allranks.azure.errors import service_errors
from allranks.azure.workspace import WorkspaceOptions, connect, quiet_uploads, sign_in
from allranks.errors import InputError, Problem
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import AssetLookup, Use, line_for
from allranks.plan.graph import Plan
from allranks.plan.reader import read_job
from allranks.runs.records import RunRecord, StepRecord
from allranks.runs.workspace import Workspace
from allranks.sdk import internals, session
from allranks.sdk.paths import is_downloadable


def read(job: str, step: str, options: WorkspaceOptions, workspace: Workspace) -> tuple[RunRecord, Plan]:
    """Return the record of a job, stored in a workspace folder with its code, and the plan of only this step of it.

    step: "" for a job that is not a pipeline

    Raise InputError if there is no such job or step, or AzureError.
    """
    from azure.ai.ml.entities import PipelineJob

    client, where = sign_in(options)
    with session.session():
        with service_errors(f"requesting job {job}"):
            entity = client.jobs.get(job)
        nodes = entity.jobs if isinstance(entity, PipelineJob) else {}
        if nodes and step not in nodes:
            raise InputError(Problem(f"job {job}", f"it has no step {step}".rstrip(), f"one of: {', '.join(nodes)}"))
        others = {name: nodes.pop(name) for name in [*nodes] if name != step}
        plan = read_job(entity, workspace.snapshots, _Downloads(workspace.root, client=client))
    record = runs.add_record(workspace, plan, job, where, where.studio(job), pipeline=bool(nodes))
    for name, node in others.items():
        record.add(StepRecord(name, str(getattr(node, "display_name", "") or name), "", "", 1, 1))
    return record, plan


@dataclass
class _Downloads(AssetLookup):
    """Downloads components and code below the folder. Data keeps its id, and no environment is needed."""

    client: Any = None

    def find(self, text: str, kind: str, where: str, *, required: bool = True, advice: str = "") -> Path | None:  # noqa: ARG002
        asset = asset_id.parse(text, kind)
        if kind not in (asset_id.COMPONENT, asset_id.CODE):
            self.uses.append(Use(asset, where, line_for(asset), None, text))
            return None
        path = self.folder / kind / asset.registry / asset.name / asset.version
        client = connect(asset.registry) if asset.registry else self.client
        operations = client.components if kind == asset_id.COMPONENT else internals.codes(client)
        if not path.exists():
            with service_errors(f"downloading {text}"), quiet_uploads():
                operations.download(asset.name, version=asset.version, download_path=path)
        return path / "component_spec.yaml" if kind == asset_id.COMPONENT else path


def download_data(client: Any, uri: str, kind: str, folder: Path) -> str:
    """Download data into a folder, and return that; or return its URI if the engine itself downloads it.

    uri:  the id of a data asset or a model, or a URI of a datastore; kind: the type of the port

    Raise InputError or AzureError.
    """
    asset = asset_id.parse(uri, asset_id.MODEL if kind.endswith("_model") else asset_id.DATA)
    with service_errors(f"downloading {uri}"), quiet_uploads():
        if asset.kind in (asset_id.DATA, asset_id.MODEL):
            operations = client.models if asset.kind == asset_id.MODEL else client.data
            uri = operations.get(asset.name, version=asset.version or None, label=asset.label or None).path
        if is_downloadable(uri):
            return uri
        internals.download_path(client, uri, folder)
    return str(folder)
