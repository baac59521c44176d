"""Your own training script under any launch, and the model that it writes registered.

    allranks run pipelines/own_script.py
    allranks run pipelines/own_script.py --set launch=torchrun --set processes_per_instance=4
    allranks run pipelines/own_script.py --set source=my/folder --set script=train.py --set arguments="--epochs 3"

The script is a plain PyTorch program, pipelines/own_scripts/train_digits.py. `allranks submit pipelines/own_script.py`
submits the same pipeline to Azure ML.
"""

from pathlib import Path

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline

from allranks import layout
from allranks.library import register_model, run_deepspeed, run_mpi, run_pytorch, run_torchrun

# Launch -> component. Under pytorch and mpi the platform starts every process, else one launcher per instance.
LAUNCHES = {"pytorch": run_pytorch, "torchrun": run_torchrun, "deepspeed": run_deepspeed, "mpi": run_mpi}
PER_PROCESS = ("pytorch", "mpi")


# `launch` decides the component when the pipeline is built. The values of inputs are only known when it runs. A folder
# has no default otherwise.
@pipeline(
    name="own_script",
    display_name="Own script",
    description="Runs a training script of one's own on all ranks, and registers the model that it writes.",
    non_pipeline_inputs=["launch", "source"],
)
def own_script(
    script: Input(type="string") = "train_digits.py",
    arguments: Input(type="string") = "--epochs 20",
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    model_name: Input(type="string") = "own-model",
    launch: str = "pytorch",
    source: str = str(Path(__file__).parent / "own_scripts"),
):
    if launch not in LAUNCHES:
        raise ValueError(f"launch is {launch!r}; give one of {', '.join(LAUNCHES)}")
    folder = Input(type="uri_folder", path=source)
    if launch in PER_PROCESS:
        train = LAUNCHES[launch](source=folder, script=script, arguments=arguments)
        layout(train, instance_count, processes_per_instance)
    else:
        train = LAUNCHES[launch](source=folder, script=script, arguments=arguments, processes=processes_per_instance)
        layout(train, instance_count)
    register = register_model(model=train.outputs.model, metrics=train.outputs.metrics, name=model_name)
    return {"results": train.outputs.results, "registration": register.outputs.registration}
