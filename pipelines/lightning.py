"""Image classification with Lightning, from images to a registered model, on several instances.

    allranks run pipelines/lightning.py
    allranks run pipelines/lightning.py --set launch=per_process

`allranks submit pipelines/lightning.py` submits the same pipeline to Azure ML.
"""

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline

from allranks import layout
from allranks.library import evaluate_image_classifier, prepare_images, register_model, train_lightning

LAUNCHES = ("per_node", "per_process")
"""Lightning starts the processes of an instance, or the platform does."""


# `launch` is read when the pipeline is built. The values of inputs are only known when it runs.
@pipeline(
    name="lightning",
    display_name="Lightning",
    description="Prepares images, trains a classifier with Lightning, evaluates it on all ranks and registers it.",
    non_pipeline_inputs=["launch"],
)
def lightning(
    source: Input(type="string", enum=["digits", "folder"]) = "digits",
    folder: Input(type="uri_folder", optional=True) = None,
    preset: Input(type="string") = "resnet_micro",
    num_train_epochs: Input(type="integer", min=1) = 8,
    per_device_train_batch_size: Input(type="integer", min=1) = 16,
    learning_rate: Input(type="number", min=1e-8) = 0.01,
    precision: Input(type="string", enum=["auto", "float32", "bfloat16", "float16"]) = "auto",
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    model_name: Input(type="string") = "image-classifier-lightning",
    metric: Input(type="string") = "accuracy",
    threshold: Input(type="number", optional=True) = None,
    launch: str = "per_node",
):
    if launch not in LAUNCHES:
        raise ValueError(f"launch is {launch!r}; give one of {', '.join(LAUNCHES)}")
    prepare = prepare_images(source=source, folder=folder, seed=seed)
    train = train_lightning(
        data=prepare.outputs.images,
        devices=processes_per_instance,
        preset=preset,
        num_train_epochs=num_train_epochs,
        per_device_train_batch_size=per_device_train_batch_size,
        learning_rate=learning_rate,
        precision=precision,
        seed=seed,
    )
    evaluate = evaluate_image_classifier(data=prepare.outputs.images, model=train.outputs.model)
    started = 1 if launch == "per_node" else processes_per_instance
    layout(train, instance_count, started)
    layout(evaluate, instance_count, processes_per_instance)

    register = register_model(
        model=train.outputs.model,
        metrics=evaluate.outputs.metrics,
        name=model_name,
        metric=metric,
        threshold=threshold,
    )
    return {
        "model": train.outputs.model,
        "history": train.outputs.history,
        "metrics": evaluate.outputs.metrics,
        "registration": register.outputs.registration,
    }
