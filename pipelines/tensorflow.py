"""Image classification with TensorFlow, from images to a registered model, on several workers.

    allranks run pipelines/tensorflow.py
    allranks run pipelines/tensorflow.py --set launch=parameter_server --set instance_count=3
    allranks run pipelines/tensorflow.py --set launch=horovod --set processes_per_instance=2

`allranks submit pipelines/tensorflow.py` submits the same pipeline to Azure ML.
"""

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline

from allranks import layout
from allranks.library import (
    evaluate_image_classifier_tensorflow,
    prepare_images,
    register_model,
    train_tensorflow,
    train_tensorflow_horovod,
    train_tensorflow_parameter_server,
)

# Launch -> training component.
LAUNCHES = {
    "mirrored": train_tensorflow,
    "parameter_server": train_tensorflow_parameter_server,
    "horovod": train_tensorflow_horovod,
}


# `launch` decides the component when the pipeline is built. The values of inputs are only known when it runs.
@pipeline(
    name="tensorflow",
    display_name="TensorFlow",
    description="Prepares images, trains a classifier with TensorFlow, evaluates it on all ranks and registers it.",
    non_pipeline_inputs=["launch"],
)
def tensorflow(
    source: Input(type="string", enum=["digits", "folder"]) = "digits",
    folder: Input(type="uri_folder", optional=True) = None,
    preset: Input(type="string") = "resnet_micro",
    num_train_epochs: Input(type="integer", min=1) = 10,
    per_device_train_batch_size: Input(type="integer", min=1) = 32,
    learning_rate: Input(type="number", min=1e-8) = 0.01,
    precision: Input(type="string", enum=["auto", "float32", "bfloat16", "float16"]) = "auto",
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 1,
    model_name: Input(type="string") = "image-classifier-tensorflow",
    metric: Input(type="string") = "accuracy",
    threshold: Input(type="number", optional=True) = None,
    launch: str = "mirrored",
):
    if launch not in LAUNCHES:
        raise ValueError(f"launch is {launch!r}; give one of {', '.join(LAUNCHES)}")
    prepare = prepare_images(source=source, folder=folder, seed=seed)
    train = LAUNCHES[launch](
        data=prepare.outputs.images,
        preset=preset,
        num_train_epochs=num_train_epochs,
        per_device_train_batch_size=per_device_train_batch_size,
        learning_rate=learning_rate,
        precision=precision,
        seed=seed,
    )
    evaluate = evaluate_image_classifier_tensorflow(data=prepare.outputs.images, model=train.outputs.model)
    if launch == "horovod":
        layout(train, instance_count, processes_per_instance)
    else:
        layout(train, instance_count)  # a worker uses all GPUs of its instance
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
