"""Verify a workspace: run preflight, collectives, an environment's check and a training, and record what each process
is given under every kind of launch.

    allranks verify-workspace --size Standard_D4s_v5
    allranks run pipelines/verify_workspace.py

`allranks verify-workspace` submits this pipeline and compares the records with those of the local engine. It registers
nothing by name.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, MpiDistribution, PyTorchDistribution, TensorFlowDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # for the components that are written in Python

from components.image_classification.prepare_images.component import prepare_images  # noqa: E402

preflight = load_component(COMPONENTS / "diagnosis/preflight/component.yaml")
benchmark_collectives = load_component(COMPONENTS / "diagnosis/benchmark_collectives/component.yaml")
verify_environment = load_component(COMPONENTS / "diagnosis/verify_environment/component.yaml")
record_launch = load_component(COMPONENTS / "diagnosis/record_launch/component.yaml")
record_launch_mpi = load_component(COMPONENTS / "diagnosis/record_launch/record_launch_mpi/component.yaml")
record_launch_tensorflow = load_component(
    COMPONENTS / "diagnosis/record_launch/record_launch_tensorflow/component.yaml"
)
record_launch_ray = load_component(COMPONENTS / "diagnosis/record_launch/record_launch_ray/component.yaml")
record_launch_single = load_component(COMPONENTS / "diagnosis/record_launch/record_launch_single/component.yaml")
train_image_classifier = load_component(COMPONENTS / "image_classification/train_image_classifier/component.yaml")

RECORDERS = {
    "pytorch": record_launch,
    "per_node": record_launch,
    "mpi": record_launch_mpi,
    "tensorflow": record_launch_tensorflow,
    "ray": record_launch_ray,
    "single": record_launch_single,
}
"""The launches, each with the component that records what its processes are given."""


@pipeline(
    name="verify_workspace",
    display_name="Verify workspace",
    description="Runs each kind of step that this project relies on, and records what its processes were given.",
    # Each step answers a question of its own.
    continue_on_step_failure=True,
    # A file's path has no default otherwise, and the launches decide which steps there are.
    non_pipeline_inputs=["expectations", "launches"],
)
def verify_workspace(
    expectations: str = str(ROOT / "environments/openmpi-ofed/expect.yaml"),
    launches: str = " ".join(RECORDERS),
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    largest_bytes: Input(type="integer", min=1024) = 16777216,
):
    if unknown := [launch for launch in launches.split() if launch not in RECORDERS]:
        raise ValueError(f"launches has {', '.join(unknown)}; expected some of: {' '.join(RECORDERS)}")
    prepare = prepare_images(source="digits")
    check = preflight()
    check.name = "preflight"
    collectives = benchmark_collectives(max_bytes=largest_bytes)
    environment = verify_environment(expectations=Input(type="uri_file", path=expectations))
    train = train_image_classifier(data=prepare.outputs.images, model="resnet_micro", num_train_epochs=1)

    for_all = JobResourceConfiguration(instance_count=instance_count)
    processes = PyTorchDistribution(process_count_per_instance=processes_per_instance)
    check.resources = collectives.resources = train.resources = for_all
    check.distribution = collectives.distribution = train.distribution = processes
    outputs = {
        "preflight": check.outputs.report,
        "bandwidth": collectives.outputs.bandwidth,
        "verification": environment.outputs.report,
        "history": train.outputs.history,
    }

    distributions = {
        "pytorch": processes,
        "per_node": PyTorchDistribution(process_count_per_instance=1),
        "mpi": MpiDistribution(process_count_per_instance=processes_per_instance),
        "tensorflow": TensorFlowDistribution(worker_count=instance_count),
    }
    for launch in launches.split():
        record = RECORDERS[launch](folder=prepare.outputs.images)
        record.name = f"record_{launch}"
        if launch != "single":
            record.resources = for_all
        if launch in distributions:
            record.distribution = distributions[launch]
        outputs[f"records_{launch}"] = record.outputs.records
    return outputs
