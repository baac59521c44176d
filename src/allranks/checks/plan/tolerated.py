"""Mistakes that azure-ai-ml ignores. For most of them the local engine refuses a job, and `allranks check` warns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.errors import Problem
from allranks.plan.graph import Step
from allranks.sdk.yaml_text import REPEATED

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
UNKNOWN_PORT = Rule(
    "unknown-port",
    Level.WARNING,
    "A step sets an input or output that its component does not have. azure-ai-ml drops it.",
    "azure-ai-ml, the request of Command._to_rest_object; Azure/azureml-examples, "
    "`nyc_taxi_data_regression_with_pipeline_component/pipeline.yml`, which has one",
    "remove it, or declare it in the component",
)
IGNORED_KEY = Rule(
    "ignored-key",
    Level.WARNING,
    "A key that resembles a known one, where azure-ai-ml ignores unknown keys: the setting has no effect.",
    "azure-ai-ml, load_job, which takes the file",
    "correct the spelling",
)
REPEATED_KEY = Rule(
    REPEATED,
    Level.WARNING,
    "A mapping has a key twice. azure-ai-ml takes the last one, and says nothing.",
    "azure-ai-ml, load_job, which takes the file; YAML 1.2, 3.2.1.1 Nodes: keys are unique; "
    "Azure-Samples/multi_env_mlops, `mlops/azureml/train/pipeline.yml`, which has one",
    "remove one of the two",
)
OUTSIDE_ENUM = Rule(
    "value-outside-enum",
    Level.WARNING,
    "A value in a pipeline's YAML is not in the enum of the component's input. azure-ai-ml does not compare them.",
    "azure-ai-ml, PipelineJob._validate, which takes the file; Azure/azureml-examples, "
    "`image_classification_with_densenet/pipeline.yml`, which has one",
    "choose a value of the enum",
)
DANGLING = Rule(
    "dangling-binding",
    Level.WARNING,
    "A step that uses a component is bound to an input, a step or an output that does not exist. azure-ai-ml does not "
    "look for it; in a step with a command of its own, it refuses such a binding.",
    "azure-ai-ml, PipelineJob._validate, which takes the file, and "
    "`entities/_job/pipeline/_component_translatable.py`, for steps with a command of their own; "
    "Azure/azureml-assets, `object-detection-using-built-in-component/pipeline.yml`, which has one",
    "bind something that exists, or declare what is missing",
)

IGNORED = Rule(
    "ignored-environment",
    Level.WARNING,
    "A step sets another environment than its component's; azure-ai-ml does not send it.",
    "azure-ai-ml 1.35, `entities/_builders/command.py`, Command._to_rest_object",
    "set the environment of the component",
)

_TOLERATED = frozenset(
    rule.code for rule in (UNKNOWN_PORT, IGNORED_KEY, REPEATED_KEY, OUTSIDE_ENUM, DANGLING, UNKNOWN_FORM)
)
_LOCAL = frozenset({"unresolved-name", "not-run-here"})
"""Assets of a workspace, a registry or the web that this machine does not have, and kinds of nodes that the local
engine does not run."""


def separated(problems: Iterable[Problem]) -> tuple[list[Problem], list[Problem], list[Problem]]:
    """Return the problems that Azure ML has too, those that azure-ai-ml ignores, and those of this machine only, such
    as a name that Azure ML can resolve."""
    refused: list[Problem] = []
    ignored: list[Problem] = []
    here: list[Problem] = []
    for problem in problems:
        (here if problem.code in _LOCAL else ignored if problem.rule in _TOLERATED else refused).append(problem)
    return refused, ignored, here


def of_step(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if a step's environment is not its component's (azure-ai-ml 1.35, `Command._to_rest_object`)."""
    if step.ignored_environment:
        yield Problem(
            scope.key(step, "environment"),
            f"{step.ignored_environment} is set on the step, which azure-ai-ml does not send",
            f"the environment of its component, in which it runs: {step.environment or 'none'}",
            "load the component once more, and set the environment of that",
            code="ignored-environment",
        )


def rule_for(text: str, is_data: bool) -> Rule:
    """Return the rule about an id that cannot be read. is_data: whether it is the id of an input's data."""
    return UNKNOWN_FORM if text.startswith("azureml://" if is_data else "azureml://registries/") else WRONG_REFERENCE
