"""Verify a workspace: run preflight, collectives, an environment's check and a training, and record what each process
is given.

    allranks verify-workspace --size Standard_D4s_v5
    allranks run pipelines/verify_workspace.py

`allranks verify-workspace` submits this pipeline and compares the records with those of the local engine. It registers
nothing by name.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, MpiDistribution, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # for the components that are written in Python

from components.prepare_images.component import prepare_images  # noqa: E402

preflight = load_component(COMPONENTS / "preflight/component.yaml")
benchmark_collectives = load_component(COMPONENTS / "benchmark_collectives/component.yaml")
verify_environment = load_component(COMPONENTS / "verify_environment/component.yaml")
record_launch = load_component(COMPONENTS / "record_launch/component.yaml")
record_launch_mpi = load_component(COMPONENTS / "record_launch_mpi/component.yaml")
train_image_classifier = load_component(COMPONENTS / "train_image_classifier/component.yaml")


@pipeline(
    name="verify_workspace",
    display_name="Verify workspace",
    description="Runs each kind of step that this project relies on, and records what its processes were given.",
    # Each step answers a question of its own.
    continue_on_step_failure=True,
    non_pipeline_inputs=["expectations"],  # a file's path has no default otherwise
)
def verify_workspace(
    expectations: str = str(ROOT / "environments/openmpi-ofed/expect.yaml"),
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    largest_bytes: Input(type="integer", min=1024) = 16777216,
):
    prepare = prepare_images(source="digits")
    check = preflight()
    check.name = "preflight"
    collectives = benchmark_collectives(max_bytes=largest_bytes)
    environment = verify_environment(expectations=Input(type="uri_file", path=expectations))
    record = record_launch(folder=prepare.outputs.images)
    record_mpi = record_launch_mpi(folder=prepare.outputs.images)
    train = train_image_classifier(data=prepare.outputs.images, model="resnet_micro", num_train_epochs=1)

    for_all = JobResourceConfiguration(instance_count=instance_count)
    check.resources = collectives.resources = record.resources = record_mpi.resources = train.resources = for_all
    processes = PyTorchDistribution(process_count_per_instance=processes_per_instance)
    check.distribution = collectives.distribution = record.distribution = train.distribution = processes
    record_mpi.distribution = MpiDistribution(process_count_per_instance=processes_per_instance)
    return {
        "records": record.outputs.records,
        "records_mpi": record_mpi.outputs.records,
        "preflight": check.outputs.report,
        "bandwidth": collectives.outputs.bandwidth,
        "verification": environment.outputs.report,
        "history": train.outputs.history,
    }
