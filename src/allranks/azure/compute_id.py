"""The forms in which a job names its compute."""

from __future__ import annotations

import re
from dataclasses import dataclass

SERVERLESS = "serverless"
LOCAL = "local"

_ARM = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices"
    r"/(?:workspaces/(?P<workspace>[^/]+)/computes|virtualclusters)/(?P<name>[^/]+)/?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ComputeId:
    """What a job says about its compute.

    name:      the name of the compute, or `SERVERLESS`, or `LOCAL`; "" if none is given
    workspace: the workspace of an ARM id; "" if only a name is given
    in_workspace: whether it is a compute of a workspace; a virtual cluster is not
    """

    name: str
    workspace: str = ""
    in_workspace: bool = True

    @classmethod
    def parse(cls, text: object) -> ComputeId:
        """Return the compute of ``cpu-cluster``, ``azureml:cpu-cluster`` or an ARM id, with or without ``azureml:``."""
        given = str(text or "").strip().removeprefix("azureml:")
        match = _ARM.fullmatch(given)
        if match is None:
            return cls(given)
        return cls(match["name"], match["workspace"] or "", in_workspace=match["workspace"] is not None)

    @property
    def is_cluster(self) -> bool:
        """Return whether it is a named compute of a workspace. An expression is known only when the job runs."""
        reserved = self.name.lower() in ("", SERVERLESS, LOCAL) or "${{" in self.name
        return self.in_workspace and not reserved

    def is_of(self, workspace: str) -> bool:
        """Return whether it is a compute of the workspace of that name, in any case."""
        return self.is_cluster and self.workspace.lower() in ("", workspace.lower())
