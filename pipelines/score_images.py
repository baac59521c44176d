"""Batch scoring: train a classifier of images, and score a folder of images with it, in parallel on several instances.

    allranks run pipelines/score_images.py
    allranks run pipelines/score_images.py --set instance_count=4

The script with the functions init and run is pipelines/image_scoring/score.py.
`allranks submit pipelines/score_images.py` submits the same pipeline to Azure ML.
"""

from pathlib import Path

from azure.ai.ml import Input, Output, command, load_environment
from azure.ai.ml.constants import AssetTypes
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.parallel import RunFunction, parallel_run_function

from allranks import layout
from allranks.library import prepare_images, train_image_classifier

HERE = Path(__file__).parent
CODE = str(HERE / "image_scoring")
ENVIRONMENT = load_environment(HERE.parent / "environments/pytorch/environment.yaml")

write_images = command(
    name="write_images",
    display_name="Write images",
    inputs={"data": Input(type="uri_folder")},
    outputs={"images": Output(type="uri_folder")},
    code=CODE,
    environment=ENVIRONMENT,
    command="python write_images.py --data ${{inputs.data}} --images ${{outputs.images}}",
)

score_images = parallel_run_function(
    name="score_images",
    display_name="Score images",
    inputs={"images": Input(type="uri_folder"), "model": Input(type=AssetTypes.MLFLOW_MODEL)},
    outputs={"scores": Output(type="uri_file")},
    input_data="${{inputs.images}}",
    mini_batch_size="32",
    instance_count=2,
    max_concurrency_per_instance=2,
    mini_batch_error_threshold=0,
    retry_settings={"max_retries": 2, "timeout": 120},
    task=RunFunction(
        code=CODE,
        entry_script="score.py",
        environment=ENVIRONMENT,
        program_arguments="--model ${{inputs.model}}",
        append_row_to="${{outputs.scores}}",
    ),
)


@pipeline(
    name="score_images",
    display_name="Score images",
    description="Trains a classifier, and scores a folder of images with it in parallel on several instances.",
)
def image_scoring(
    num_train_epochs: Input(type="integer", min=1) = 8,
    instance_count: Input(type="integer", min=1) = 2,
):
    prepare = prepare_images(source="digits")
    train = train_image_classifier(
        data=prepare.outputs.images, model="resnet_micro", num_train_epochs=num_train_epochs, learning_rate=0.008
    )
    layout(train, instance_count=2, process_count_per_instance=2)
    images = write_images(data=prepare.outputs.images)
    score = score_images(images=images.outputs.images, model=train.outputs.model)
    layout(score, instance_count)
    return {"scores": score.outputs.scores}
