"""Rules about the ids of components, data, environments and models, which `allranks.plan.assets.lookup` reads."""

from __future__ import annotations

from allranks.plan.check.rule import Level, Rule

WRONG_REFERENCE = Rule(
    "asset-reference",
    Level.ERROR,
    "A reference to a component, data asset, environment or model of a workspace has no name or no version, or names "
    "another kind of asset.",
    "azure-ai-ml, `operations/_operation_orchestrator.py`, OperationOrchestrator.get_asset_arm_id",
    "correct the reference",
)
UNKNOWN_FORM = Rule(
    "asset-id",
    Level.WARNING,
    "A URI azureml://... has none of the forms that Azure ML documents, or names another kind of asset. azure-ai-ml "
    "sends it as it is.",
    "azure-ai-ml, `operations/_job_operations.py`, JobOperations._resolve_job_input, which passes on each URI, and "
    "`_utils/_arm_id_utils.py`, is_registry_id_for_resource; NVIDIA/NVIDIA_AI_Enterprise_AzureML, "
    "`monai_training_job.yaml`, which has one",
    "write azureml://registries/REGISTRY/KIND/NAME/versions/VERSION",
)


def rule_for(text: str, is_data: bool) -> Rule:
    """Return the rule about an id that cannot be read. is_data: whether it is the id of an input's data."""
    return UNKNOWN_FORM if text.startswith("azureml://" if is_data else "azureml://registries/") else WRONG_REFERENCE
