"""Train gradient boosted trees with LightGBM, on the rows that are divided over the ranks."""

import logging
from argparse import Namespace
from pathlib import Path
from typing import Any

import lightgbm
import network
import table
from boosting import Boosting
from checkpoints import Checkpoints, Progress
from sampling import Sampling, check_resumable, check_rows
from saving import check_room, importance, save
from validation import Validation, default_metric

from allranks import runtime
from allranks.runtime import sockets
from allranks_steps.json_files import write_json
from allranks_steps.messages import bad_input, first_line
from allranks_steps.models.mlmodel import load_model
from allranks_steps.tables.prepared_table import CLASSIFICATION, REGRESSION, Description

NETWORK = ("machines", "num_machines", "local_listen_port", "time_out", "pre_partition")
OURS = (*NETWORK, "objective", "num_class", "metric")
"""Parameters of LightGBM that follow from the launch, the data or the component's inputs."""

TRIED_ROWS = 100
"""Number of rows for testing the parameters before the training."""

NAMES = (
    "learning_rate",
    "num_leaves",
    "max_depth",
    "min_data_in_leaf",
    "feature_fraction",
    "bagging_fraction",
    "bagging_freq",
    "lambda_l1",
    "lambda_l2",
    "max_bin",
    "tree_learner",
    "seed",
)
"""Inputs of the component that are parameters of LightGBM by the same name."""


def train(ranks: sockets.Ranks) -> None:
    args = runtime.arguments()
    lightgbm.register_logger(logging.getLogger("lightgbm"))  # only warnings and errors
    description = table.describe(args.data, args)
    rows = table.read(args.data, "train", description, ranks.rank, ranks.world_size)
    validation = table.read(args.data, "validation", description, ranks.rank, ranks.world_size)
    description = table.with_classes(description, rows, validation, ranks)
    count, least = table.check_counts(rows, validation, ranks)
    metric = chosen_metric(args.metric, description)
    parameters = settings(args, description, ranks)
    check_resumable(parameters)
    check_rows(parameters, least)
    check_accepted(parameters, rows, ranks)

    checkpoints = Checkpoints(args.checkpoints, args.save_total_limit)
    model, progress = start(args, checkpoints, description)
    scoring = Validation(validation, description, ranks)
    boosting = Boosting(args, ranks, scoring, checkpoints, progress, metric=metric, rows=count)
    check_room(args, parameters, count, ranks)
    ranks.metrics.log_params({name: value for name, value in vars(args).items() if not isinstance(value, Path)})
    booster = boost(parameters | network.parameters(ranks), rows, validation, description, model, boosting)

    if args.early_stopping_round and progress.best_iteration:
        # Of a model that was continued, the trees before do not count as iterations.
        before = booster.current_iteration() - progress.iteration
        booster = lightgbm.Booster(model_str=booster.model_to_string(num_iteration=before + progress.best_iteration))
    hardware = ranks.measured_on()
    if ranks.is_main:
        save(booster, rows.features, description, args.model)
        ranked = importance(booster)
        write_json(args.feature_importance, ranked)
        ranks.metrics.log_dict(ranked, "feature_importance.json")
        about = {
            "strategy": f"LightGBM {args.tree_learner}",
            "launcher": ranks.env.launcher,
            "parameters": sum(tree["num_leaves"] for tree in booster.dump_model()["tree_info"]),
            "samples_per_step": count,
            "best_metric": progress.best,
        }
        progress.history.write(args.history, about | hardware)
        chosen = progress.best_iteration if args.early_stopping_round else progress.iteration
        print(
            f"{ranks.world_size} ranks, {count} rows: {chosen} iterations, validation {metric} {progress.best:.4f}",
            flush=True,
        )


def start(
    args: Namespace, checkpoints: Checkpoints, description: Description
) -> tuple[lightgbm.Booster | None, Progress]:
    """Return the trees to continue and the progress, from a checkpoint or an initial model."""
    loaded = checkpoints.load(args.resume_from_checkpoint)
    if loaded is not None:
        model, progress = lightgbm.Booster(model_str=loaded[0]), loaded[1]
        check_features(model, description, "input resume_from_checkpoint")
        return model, progress
    if args.initial_model is None:
        return None, Progress()
    import mlflow.lightgbm

    where = "input initial_model"
    fix = "give the output `model` of train_gradient_boosting"
    model = load_model(mlflow.lightgbm, args.initial_model, where, fix)
    check_features(model, description, where)
    return model, Progress()


def check_features(model: lightgbm.Booster, description: Description, where: str) -> None:
    """Raise InputError if a model takes other features or has other classes."""
    if model.feature_name() != list(description.features):
        found = f"a model of the features {', '.join(model.feature_name()[:5])}, ..."
        raise bad_input(where, found, f"the features of the data: {', '.join(description.features[:5])}, ...")
    trees = len(description.classes) if len(description.classes) > 2 else 1
    if model.num_model_per_iteration() != trees:
        found = f"a model with {model.num_model_per_iteration()} trees per iteration"
        raise bad_input(where, found, f"{trees}, for the classes of the data")


def boost(
    parameters: dict[str, Any],
    rows: table.Rows,
    validation: table.Rows,
    description: Description,
    model: lightgbm.Booster | None,
    boosting: Boosting,
) -> lightgbm.Booster:
    """Train the remaining trees."""
    categorical = [name for name in description.features if name in description.categories]
    training = lightgbm.Dataset(rows.features, rows.label, weight=rows.weight, categorical_feature=categorical)
    held_out = lightgbm.Dataset(validation.features, validation.label, weight=validation.weight, reference=training)
    remaining = parameters["num_iterations"] - boosting.progress.iteration
    if remaining <= 0:
        assert model is not None
        return model
    sampling = Sampling(parameters, boosting.rank)
    booster = lightgbm.train(
        parameters | sampling.initial | {"num_iterations": remaining},
        training,
        valid_sets=[held_out],
        feval=boosting.evaluate,
        init_model=model,
        keep_training_booster=True,
        callbacks=[sampling, boosting.after_iteration],
    )
    booster.free_network()
    return booster


def settings(args: Namespace, description: Description, ranks: sockets.Ranks) -> dict[str, Any]:
    """Return LightGBM's parameters. Raise InputError for an unknown one, or one that the component sets."""
    objective = args.objective
    if objective == "auto":
        multiple = "multiclass" if len(description.classes) > 2 else "binary"
        objective = "regression" if description.task == REGRESSION else multiple
    task = CLASSIFICATION if objective in ("binary", "multiclass") else REGRESSION
    if task != description.task or (objective == "binary" and len(description.classes) != 2):
        kind = f"a {description.task}" + (f" with {len(description.classes)} classes" * bool(description.classes))
        raise bad_input("input objective", f"{objective} for {kind}", "an objective for it", "set it to auto")
    parameters = {name: getattr(args, name) for name in NAMES}
    parameters |= {"objective": objective, "num_iterations": args.num_iterations, "num_threads": ranks.threads}
    # Evaluations are over the rows of all ranks: LightGBM's own would be of each rank's rows.
    parameters |= {"metric": "None", "verbosity": -1, "feature_pre_filter": False}
    if objective == "multiclass":
        parameters["num_class"] = len(description.classes)
    if ranks.world_size == 1:
        parameters["tree_learner"] = "serial"
    return parameters | more_parameters(args.params or "")


def more_parameters(text: str) -> dict[str, str]:
    """Return the parameters of a text such as "path_smooth=1 extra_trees=true". Raise InputError."""
    parameters = {}
    known = getattr(lightgbm.basic, "_ConfigAliases", None)
    for item in text.split():
        name, equals, value = item.partition("=")
        if not equals or not value:
            raise bad_input("input params", repr(item), "NAME=VALUE", 'write "path_smooth=1 extra_trees=true"')
        aliases = known._get_all_param_aliases() if known else {name: []}
        main = next((main for main, others in aliases.items() if name == main or name in others), None)
        if main is None:
            raise bad_input("input params", f"{name} is not a parameter of LightGBM", "one of its documentation")
        if main in OURS or main in NAMES or main in ("num_iterations", "early_stopping_round"):
            inputs = (*NAMES, "num_iterations", "objective", "metric", "early_stopping_round")
            fix = f"set the input {main}" if main in inputs else "remove it"
            raise bad_input("input params", f"{name} is set by the component", fix=fix)
        parameters[main] = value
    return parameters


def check_accepted(parameters: dict[str, Any], rows: table.Rows, ranks: sockets.Ranks) -> None:
    """Raise InputError if LightGBM rejects a parameter, or does not support it on several ranks. A collective."""
    if ranks.world_size > 1 and str(parameters.get("linear_tree", "")).lower() in ("true", "1", "+"):
        fix = "leave linear_tree out, or train on one rank"
        raise bad_input("input params", f"linear_tree on {ranks.world_size} ranks", "constant leaves", fix)
    refused = None
    try:
        few = lightgbm.Dataset(rows.features.slice(0, TRIED_ROWS), rows.label[:TRIED_ROWS], params=parameters)
        lightgbm.Booster(parameters, few)
    except (lightgbm.basic.LightGBMError, ValueError, TypeError) as error:
        refused = first_line(error)
    refused = next((said for said in ranks.all_gather(refused) if said), None)
    if refused:
        raise bad_input("input params", f"LightGBM refuses the parameters: {refused}", fix="see its documentation")


def chosen_metric(name: str, description: Description) -> str:
    """Return the metric for early stopping. Raise InputError if it does not fit the task."""
    metric = default_metric(description) if name == "auto" else name
    if (metric in ("rmse", "mae")) != (description.task == REGRESSION):
        raise bad_input("input metric", f"{metric} for a {description.task}", "a metric of it", "set it to auto")
    return metric


if __name__ == "__main__":
    sockets.main(train)
