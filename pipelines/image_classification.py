"""Image classification, from images to a registered model, with the training spread over several instances.

    allranks run pipelines/image_classification.py
    allranks run pipelines/image_classification.py --set num_train_epochs=20 --set instance_count=4

`allranks submit pipelines/image_classification.py` submits the same pipeline to Azure ML.
"""

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline

from allranks import layout
from allranks.library import evaluate_image_classifier, prepare_images, register_model, train_image_classifier


@pipeline(
    name="image_classification",
    display_name="Image classification",
    description="Prepares images, trains a classifier on all ranks, evaluates it on all ranks and registers it.",
)
def image_classification(
    source: Input(type="string", enum=["digits", "folder"]) = "digits",
    folder: Input(type="uri_folder", optional=True) = None,
    model: Input(type="string") = "resnet_micro",
    num_train_epochs: Input(type="integer", min=1) = 8,
    per_device_train_batch_size: Input(type="integer", min=1) = 32,
    learning_rate: Input(type="number", min=1e-6) = 0.008,
    max_shift: Input(type="integer", min=0) = 1,
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    model_name: Input(type="string") = "image-classifier",
    minimum_accuracy: Input(type="number", min=0.0, max=1.0) = 0.0,
):
    prepare = prepare_images(source=source, folder=folder, seed=seed)

    train = train_image_classifier(
        data=prepare.outputs.images,
        model=model,
        num_train_epochs=num_train_epochs,
        per_device_train_batch_size=per_device_train_batch_size,
        learning_rate=learning_rate,
        max_shift=max_shift,
        seed=seed,
    )
    evaluate = evaluate_image_classifier(data=prepare.outputs.images, model=train.outputs.model)
    layout(train, instance_count, processes_per_instance)
    layout(evaluate, instance_count, processes_per_instance)

    register = register_model(
        model=train.outputs.model,
        metrics=evaluate.outputs.metrics,
        name=model_name,
        threshold=minimum_accuracy,
    )
    return {
        "model": train.outputs.model,
        "metrics": evaluate.outputs.metrics,
        "registration": register.outputs.registration,
    }
