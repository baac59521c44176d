"""Classification of points on two spirals, with the training on two instances with two processes each.

    allranks run pipelines/two_spirals.py
    allranks run pipelines/two_spirals.py --set epochs=50 --set instance_count=1
    allranks submit pipelines/two_spirals.py --dry-run

`nightly` declares a schedule: `allranks schedules next` prints when it fires.
"""

from pathlib import Path

from azure.ai.ml import Input, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration, JobSchedule, RecurrencePattern, RecurrenceTrigger

COMPONENTS = Path(__file__).resolve().parent.parent / "components"

prepare_points = load_component(COMPONENTS / "prepare_points/component.yaml")
train_classifier = load_component(COMPONENTS / "train_classifier/component.yaml")
evaluate_classifier = load_component(COMPONENTS / "evaluate_classifier/component.yaml")


@pipeline(
    name="two_spirals",
    display_name="Two spirals",
    description="Draws points on two spirals, trains a classifier on all ranks and evaluates it.",
)
def two_spirals(
    count: Input(type="integer", min=100) = 2000,
    epochs: Input(type="integer", min=1) = 20,
    learning_rate: Input(type="number", min=1e-6) = 0.01,
    instance_count: Input(type="integer", min=1) = 2,
):
    prepare = prepare_points(count=count)
    train = train_classifier(points=prepare.outputs.points, epochs=epochs, learning_rate=learning_rate)
    # A new object: by default, all steps of a component share its object.
    train.resources = JobResourceConfiguration(instance_count=instance_count)
    evaluate = evaluate_classifier(points=prepare.outputs.points, model=train.outputs.model)
    return {"model": train.outputs.model, "report": evaluate.outputs.report}


def nightly() -> JobSchedule:
    """Return a schedule for every night at 02:30, Berlin time."""
    return JobSchedule(
        name="two-spirals-nightly",
        display_name="Two spirals, nightly",
        trigger=RecurrenceTrigger(
            frequency="day",
            interval=1,
            schedule=RecurrencePattern(hours=2, minutes=30),
            start_time="2026-01-05T00:00:00",
            time_zone="W. Europe Standard Time",
        ),
        create_job=two_spirals(),
    )
