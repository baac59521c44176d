"""Verify a workspace: run preflight, collectives, an environment's check and a training, and record what each process
is given under every kind of launch.

    allranks verify-workspace --size Standard_D4s_v5
    allranks run pipelines/verify_workspace.py

`allranks verify-workspace` submits this pipeline and compares the records with those of the local engine. It registers
nothing by name.
"""

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline

from allranks import layout
from allranks.catalog import shipped_folder
from allranks.library import (
    benchmark_collectives,
    preflight,
    prepare_images,
    record_launch,
    record_launch_mpi,
    record_launch_ray,
    record_launch_single,
    record_launch_tensorflow,
    train_image_classifier,
    verify_environment,
)

RECORDERS = {
    "pytorch": record_launch,
    "per_node": record_launch,
    "mpi": record_launch_mpi,
    "tensorflow": record_launch_tensorflow,
    "ray": record_launch_ray,
    "single": record_launch_single,
}
"""The launches, each with the component that records what its processes are given."""

WITH_PROCESS_COUNT = ("pytorch", "per_node", "mpi")


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
    expectations: str = str(shipped_folder() / "environments/openmpi-ofed/expect.yaml"),
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

    layout(check, instance_count, processes_per_instance)
    layout(collectives, instance_count, processes_per_instance)
    layout(train, instance_count, processes_per_instance)
    outputs = {
        "preflight": check.outputs.report,
        "bandwidth": collectives.outputs.bandwidth,
        "verification": environment.outputs.report,
        "history": train.outputs.history,
    }

    for launch in launches.split():
        record = RECORDERS[launch](folder=prepare.outputs.images)
        record.name = f"record_{launch}"
        if launch in WITH_PROCESS_COUNT:
            processes = 1 if launch == "per_node" else processes_per_instance
            layout(record, instance_count, processes)
        elif launch != "single":
            layout(record, instance_count)
        outputs[f"records_{launch}"] = record.outputs.records
    return outputs
