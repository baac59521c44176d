"""The forms in which a job names its compute."""

import pytest

from allranks.azure.requirements import ComputeId

ARM = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices"


@pytest.mark.parametrize(
    ("text", "name", "of_ws"),
    [
        ("cpu-cluster", "cpu-cluster", True),
        ("azureml:cpu-cluster", "cpu-cluster", True),
        (f"{ARM}/workspaces/WS/computes/cpu-cluster", "cpu-cluster", True),
        (f"azureml:{ARM.lower()}/workspaces/ws/computes/cpu-cluster/", "cpu-cluster", True),
        (f"{ARM}/workspaces/other/computes/cpu-cluster", "cpu-cluster", False),
        (f"{ARM}/virtualclusters/shared", "shared", False),
        ("serverless", "serverless", False),
        ("azureml:Serverless", "Serverless", False),
        ("local", "local", False),
        ("${{parent.inputs.compute}}", "${{parent.inputs.compute}}", False),
        ("", "", False),
        (None, "", False),
    ],
)
def test_forms(text: str | None, name: str, of_ws: bool) -> None:
    compute = ComputeId.parse(text)
    assert (compute.name, compute.is_of("ws")) == (name, of_ws)
