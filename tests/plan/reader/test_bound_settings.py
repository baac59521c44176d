"""Settings of a step that are bound to inputs of the pipeline: their values, and what each mistake says."""

from pathlib import Path

import pytest

from allranks.contract.mpi import Mpi
from allranks.errors import InputError
from allranks.plan.graph import Parallel, Step, Sweep
from allranks.plan.ports import Literal
from pipeline_files import read, write_dsl

PIPELINE = """
from azure.ai.ml import command
from azure.ai.ml.entities import JobResourceConfiguration, QueueSettings
from azure.ai.ml.parallel import RunFunction, parallel_run_function
from azure.ai.ml.sweep import Choice

task = RunFunction(code="src", entry_script="score.py", environment="azureml:x:1")
score = parallel_run_function(
    name="score", inputs={"images": Input(type="uri_folder")}, input_data="${{inputs.images}}", task=task,
    mini_batch_size="2", error_threshold=9,
)

@dsl.pipeline
def bound(n: int = 2, seconds: int = 60, name: str = "loss", tier: str = "spot", size: str = None):
    step = command(command="echo", environment="azureml:torch:1")()
"""

VALID = """
    step.distribution = MpiDistribution(process_count_per_instance=n)
    step.resources = JobResourceConfiguration(instance_count=n, instance_type=f"Standard_D{n}s_v5", shm_size=f"{n}g")
    step.set_limits(timeout=seconds)
    step.compute = f"cluster-{size}"
    step.queue_settings = QueueSettings(job_tier="standard")
    data = Input(type="uri_folder", path="data")
    batches = score(images=data)
    batches.resources = JobResourceConfiguration(instance_count=n)
    batches.max_concurrency_per_instance = batches.error_threshold = n
    batches.retry_settings = {"max_retries": n, "timeout": seconds}
    batches.mini_batch_size, batches.logging_level = "${{parent.inputs.n}}", "DEBUG"
    tune = train(data=data, lr=Choice([0.1, n])).sweep(primary_metric=name, goal="minimize", sampling_algorithm="grid")
    tune.set_limits(max_total_trials=n)
"""


def test_values(here: Path) -> None:
    nodes = read(write_dsl(here, PIPELINE + VALID), {"n": "3"}).graph.by_name
    step, tune, batches = nodes["step"], nodes["tune"], nodes["score"]
    assert isinstance(step, Step)
    assert isinstance(batches, Step)
    assert isinstance(tune, Sweep)
    assert (step.distribution, step.instance_count, step.instance_type) == (Mpi(3), 3, "Standard_D3s_v5")
    assert (step.shm_size, step.timeout, step.job_tier) == (3 << 30, 60, "standard")
    assert (step.azure_only, batches.azure_only) == (("queue_settings",), ())
    settings = {"max_concurrency": 3, "error_threshold": 3, "max_retries": 3, "mini_batch_size": 3}
    assert batches.parallel == Parallel("score.py", "${{inputs.images}}", **settings, logging_level="DEBUG")
    assert batches.instance_count == 3
    assert (tune.metric, tune.limits.total) == ("loss", 3)
    assert tune.search_space[0].choices == (Literal(0.1), Literal(3))


@pytest.mark.parametrize(
    ("statement", "key", "found"),
    [
        ("step.set_limits(timeout=n * 30)", "limits.timeout", "Only string concatenation expression is supported"),
        ("step.environment_variables = {'A': n + 1}", "environment_variables.A", "Only string concatenation"),
        ("step.compute = '${{parent.inputs.cluster}}'", "compute", "the pipeline has no input cluster"),
        ("step.resources = {'instance_type': '${{parent.inputs.sise}}'}", "resources.instance_type", "no input sise"),
        ("step.resources = {'instance_type': f'D{size}'}", "resources.instance_type", "input size, which has no value"),
        ("step.resources = {'shm_size': f'{n} lots'}", "resources.shm_size", "'2 lots'"),
        ("step.queue_settings = QueueSettings(job_tier=tier)", "queue_settings.job_tier", "which azure-ai-ml refuses"),
        ("step.set_resources(instance_count=n)", "resources.instance_count", "${{parent.inputs.n}}, a binding"),
        (
            "step.component.resources = JobResourceConfiguration(instance_type=tier)",
            "resources.instance_type",
            "a binding",
        ),
        ("step = score(images=Input(path='d')); step.logging_level = name", "logging_level", "azure-ai-ml cannot send"),
    ],
)
def test_mistakes(here: Path, statement: str, key: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        read(write_dsl(here, f"{PIPELINE}    {statement}\n"))
    (problem,) = caught.value.problems
    assert f", key {key} (" in problem.where
    assert found in problem.found
