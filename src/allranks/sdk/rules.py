"""The rules of what reading a job finds, which azure-ai-ml ignores or refuses without a clear message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allranks.errors import Level, Problem, Rule
from allranks.sdk.yaml_lines import REPEATED_KEY, UNQUOTED_VALUE

WRONG_REFERENCE = Rule.error(
    "asset-reference",
    "A reference to a component, data asset, environment or model of a workspace has no name or no version, or names "
    "another kind of asset.",
    "azure-ai-ml, `operations/_operation_orchestrator.py`, OperationOrchestrator.get_asset_arm_id",
    "correct the reference",
)
UNKNOWN_FORM = Rule.error(
    "asset-id",
    "A URI azureml://... has none of the forms that Azure ML documents, or names another kind of asset. azure-ai-ml "
    "sends it as it is.",
    "azure-ai-ml, `operations/_job_operations.py`, JobOperations._resolve_job_input, which passes on each URI, and "
    "`_utils/_arm_id_utils.py`, is_registry_id_for_resource; NVIDIA/NVIDIA_AI_Enterprise_AzureML, "
    "`monai_training_job.yaml`, which has one",
    "write azureml://registries/REGISTRY/KIND/NAME/versions/VERSION",
    accepted_by_sdk=True,
)
UNKNOWN_PORT = Rule.warning(
    "unknown-port",
    "A step sets an input or output that its component does not have. azure-ai-ml drops it.",
    "azure-ai-ml, the request of Command._to_rest_object; Azure/azureml-examples, "
    "`nyc_taxi_data_regression_with_pipeline_component/pipeline.yml`, which has one",
    "remove it, or declare it in the component",
)
ENVIRONMENT_EMPTY = Rule.error(
    "environment-empty",
    "An inline environment has neither an image nor a build context.",
    "azure-ai-ml, `entities/_assets/environment.py`, Environment.validate",
    "add image or build",
)
NO_ENVIRONMENT = Rule.warning(
    "no-environment",
    "A step with a command of its own has no environment. It runs here, in the Python of allranks; azure-ai-ml refuses "
    "to submit it.",
    "azure-ai-ml, `_schema/component/command_component.py`: required, as PipelineJob._validate checks",
    "name an environment: azureml:NAME:VERSION, or keys such as image and conda_file",
)
NO_COMPUTE = Rule.warning(
    "no-compute",
    "Steps have no compute, and the pipeline has no default one. It runs here; azure-ai-ml refuses to submit it.",
    "azure-ai-ml, `entities/_component/pipeline_component.py`, PipelineComponent._validate_compute_is_set",
    "name one: settings.default_compute; or submit it with --compute NAME, or with --size SIZE for serverless",
)
IGNORED_KEY = Rule.warning(
    "ignored-key",
    "A key that resembles a known one, where azure-ai-ml ignores unknown keys: the setting has no effect.",
    "azure-ai-ml, load_job, which accepts the file",
    "correct the spelling",
)
UNKNOWN_STEP = Rule.warning(
    "unknown-step",
    "`allranks.yaml` has a setting for a step that the pipeline does not have. Another pipeline may have it.",
    "docs/names.md, which describes `allranks.yaml`",
    "correct the name",
)
COUNT_BINDING = Rule.error(
    "count-binding",
    "A component, a command job or a step with a command of its own has a binding as instance_count or "
    "process_count_per_instance; in Python, also an object as instance_type or shm_size.",
    "azure-ai-ml, `_schema/job_resource_configuration.py` and `_schema/job/distribution.py`: the numbers are "
    "fields.Int; Azure/azure-sdk-for-python#29538 allows bindings on nodes that use a component",
    "write the value, and set the binding on the step of a pipeline that uses the component",
)

BOUND_SECTION = Rule(
    "bound-section",
    Level.MACHINE,
    "A group of settings of a step, such as environment_variables or distribution, is bound to an input as a whole. "
    "azure-ai-ml sends the binding. It is not documented how Azure ML reads the input's value, so that the step does "
    "not run on this machine.",
    "azure-ai-ml, the request of Command._to_rest_object; Azure/azure-sdk-for-python#28882",
    "bind each value: {NAME: ${{parent.inputs.INPUT}}}",
)

UNSENT_BINDING = Rule.warning(
    "unsent-binding",
    "A setting of a step has a binding that azure-ai-ml drops, or that it cannot send, so that it does not submit the "
    "job.",
    "azure-ai-ml, the request of each node: BaseNode._to_rest_object",
    "write the value",
)

RULES = (
    *(WRONG_REFERENCE, UNKNOWN_FORM, ENVIRONMENT_EMPTY, NO_ENVIRONMENT, NO_COMPUTE),
    *(UNKNOWN_PORT, UNKNOWN_STEP, IGNORED_KEY, REPEATED_KEY, UNQUOTED_VALUE),
    *(COUNT_BINDING, BOUND_SECTION, UNSENT_BINDING),
)

_NUMBERS = (("resources", "instance_count"), ("distribution", "process_count_per_instance"))
_TEXTS = (("resources", "instance_type"), ("resources", "shm_size"))


def bound_counts(sections: Mapping[str, Any]) -> list[tuple[tuple[str, str], Any]]:
    """Return the keys with a binding that azure-ai-ml refuses in a component's resources and distribution: of numbers
    any, of texts those that are objects of the DSL.

    sections: mappings, or objects of azure-ai-ml
    """
    found = []
    for section, name in (*_NUMBERS, *_TEXTS):
        settings = sections.get(section)
        value = settings.get(name) if isinstance(settings, Mapping) else getattr(settings, name, None)
        if "${{" in str(value) and not ((section, name) in _TEXTS and isinstance(value, str)):
            found.append(((section, name), value))
    return found


def count_problem(where: str, value: Any) -> Problem:
    """Return the error of a binding in place of a value."""
    return COUNT_BINDING.problem(where, f"{value}, a binding", "a value")
