"""Recurring training on new images. The model is registered only if it is better than the registered one.

    allranks run pipelines/recurring_training.py --set arrived=0.3
    allranks run pipelines/recurring_training.py --set arrived=0.6
    allranks run pipelines/recurring_training.py --set source=folder --set folder=incoming

`allranks submit pipelines/recurring_training.py` submits the same pipeline to Azure ML, and `allranks schedules apply`
creates the schedule.
"""

import os

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobSchedule, RecurrencePattern, RecurrenceTrigger

from allranks import layout
from allranks.library import (
    evaluate_image_classifier,
    get_champion,
    promote_model,
    select_new_data,
    train_image_classifier,
)

# Environment variable: the folder in which images arrive; on Azure ML azureml://datastores/NAME/paths/FOLDER.
LABELLED_IMAGES = "LABELLED_IMAGES"


@pipeline(
    name="recurring_training",
    display_name="Recurring training",
    description=(
        "Trains the registered model further on the images that came since, and registers the result if it is better "
        "on the same held-out images."
    ),
)
def recurring_training(
    source: Input(type="string", enum=["digits", "folder"]) = "digits",
    folder: Input(type="uri_folder", optional=True) = None,
    arrived: Input(type="number", min=0.1, max=1.0) = 1.0,
    image_size: Input(type="integer", min=8, max=512) = 32,
    minimum_new: Input(type="integer", min=1) = 1,
    model: Input(type="string") = "resnet_micro",
    num_train_epochs: Input(type="integer", min=1) = 8,
    per_device_train_batch_size: Input(type="integer", min=1) = 32,
    learning_rate: Input(type="number", min=1e-6) = 0.008,
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    model_name: Input(type="string") = "recurring-image-classifier",
    margin: Input(type="number", min=0.0, max=1.0) = 0.0,
    minimum_accuracy: Input(type="number", min=0.0, max=1.0) = 0.0,
    trigger_time: Input(type="string", optional=True) = None,
    code_version: Input(type="string", optional=True) = None,
):
    champion = get_champion(name=model_name)
    select = select_new_data(
        folder=folder,
        champion=champion.outputs.model,
        source=source,
        arrived=arrived,
        image_size=image_size,
        minimum_new=minimum_new,
    )
    train = train_image_classifier(
        data=select.outputs.images,
        initial_model=champion.outputs.model,
        model=model,
        num_train_epochs=num_train_epochs,
        per_device_train_batch_size=per_device_train_batch_size,
        learning_rate=learning_rate,
        seed=seed,
    )
    evaluate = evaluate_image_classifier(
        data=select.outputs.images, model=train.outputs.model, baseline=champion.outputs.model
    )
    layout(train, instance_count, processes_per_instance)
    layout(evaluate, instance_count, processes_per_instance)
    promote = promote_model(
        model=train.outputs.model,
        metrics=evaluate.outputs.metrics,
        champion=champion.outputs.champion,
        selection=select.outputs.selection,
        name=model_name,
        margin=margin,
        threshold=minimum_accuracy,
        trigger_time=trigger_time,
        code_version=code_version,
    )
    return {
        "model": train.outputs.model,
        "metrics": evaluate.outputs.metrics,
        "registration": promote.outputs.registration,
    }


def weekly() -> JobSchedule:
    """Return a schedule for Mondays at 02:30, Berlin time, on LABELLED_IMAGES if it is set, otherwise on the digits."""
    images = os.environ.get(LABELLED_IMAGES)
    data = {"source": "folder", "folder": Input(type="uri_folder", path=images)} if images else {}
    return JobSchedule(
        name="recurring-training-weekly",
        display_name="Recurring training, weekly",
        trigger=RecurrenceTrigger(
            frequency="week",
            interval=1,
            schedule=RecurrencePattern(hours=2, minutes=30, week_days=["monday"]),
            start_time="2026-01-05T00:00:00",
            time_zone="W. Europe Standard Time",
        ),
        create_job=recurring_training(trigger_time="${{creation_context.trigger_time}}", **data),
    )
