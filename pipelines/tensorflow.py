"""Image classification with TensorFlow, from images to a registered model, on several workers.

    allranks run pipelines/tensorflow.py
    allranks run pipelines/tensorflow.py --set launch=parameter_server --set instance_count=3
    allranks run pipelines/tensorflow.py --set launch=horovod --set processes_per_instance=2

`allranks submit pipelines/tensorflow.py` submits the same pipeline to Azure ML.
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

register_model = load_component(COMPONENTS / "model_management/register_model/component.yaml")

# Launch -> training component.
LAUNCHES = {
    "mirrored": "train_tensorflow",
    "parameter_server": "train_tensorflow_parameter_server",
    "horovod": "train_tensorflow_horovod",
}
evaluate_image_classifier = load_component(
    COMPONENTS / "image_classification/evaluate_image_classifier_tensorflow/component.yaml"
)


# `launch` decides the component when the pipeline is built. The values of inputs are only known when it runs.
@pipeline(
    name="tensorflow",
    display_name="TensorFlow",
    description="Prepares images, trains a classifier with TensorFlow, evaluates it on all ranks and registers it.",
    non_pipeline_inputs=["launch"],
)
def tensorflow(
    source: Input(type="string", enum=["digits", "cifar10", "folder"]) = "digits",
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
    train_tensorflow = load_component(next(COMPONENTS.rglob(f"{LAUNCHES[launch]}/component.yaml")))

    prepare = prepare_images(source=source, folder=folder, seed=seed)
    train = train_tensorflow(
        data=prepare.outputs.images,
        preset=preset,
        num_train_epochs=num_train_epochs,
        per_device_train_batch_size=per_device_train_batch_size,
        learning_rate=learning_rate,
        precision=precision,
        seed=seed,
    )
    evaluate = evaluate_image_classifier(data=prepare.outputs.images, model=train.outputs.model)
    # New objects: by default, all steps of a component share its objects.
    train.resources = evaluate.resources = JobResourceConfiguration(instance_count=instance_count)
    evaluate.distribution = PyTorchDistribution(process_count_per_instance=processes_per_instance)
    if launch == "horovod":
        train.distribution = MpiDistribution(process_count_per_instance=processes_per_instance)
    else:
        # A worker uses all GPUs of its instance, so that there is one on each.
        servers = 1 if launch == "parameter_server" else 0
        train.distribution = TensorFlowDistribution(worker_count=instance_count, parameter_server_count=servers)

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
