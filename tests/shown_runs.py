"""Runs that people show to colleagues: a large pipeline while it runs, and a distributed training that has failed."""

import math
from pathlib import Path

from allranks.history.records import OutputRecord, Point, Progress, RankRecord, RunRecord, Status, StepRecord, Verdict
from run_records import BEGIN, make_run, make_step

WAITING = {"status": Status.NOT_STARTED, "started": None, "ended": None}


def large_running(folder: Path, count: int = 1000, begin: float = BEGIN) -> tuple[RunRecord, float]:
    """A pipeline of `count` steps of which two have failed and eight are running, and the time now.

    folder: the run's folder, in which the logs are written
    """
    shards = count - 4
    done = int(0.6 * shards)
    now = begin + 745
    steps = [
        _with_log(
            make_step("download", component="download_corpus", started=begin + 1, ended=begin + 42),
            folder,
            "42 files\n",
        )
    ]
    for index in range(shards):
        name = f"tokenize_{index:03}"
        step = make_step(name, ("download",), component="tokenize_text")
        step.started = begin + 43 + index * 1.1
        step.inputs = {"shard": str(folder / "download/named-outputs/shards" / str(index)), "vocabulary": "32000"}
        if index < done:
            step.ended = step.started + 6 + index % 7
            step.outputs = [OutputRecord("tokens", "uri_folder", str(folder / name / "named-outputs/tokens"))]
            step.metrics = {"tokens": [Point(0, 1.2e6 + 1000 * (index * 7919 % 997), step.ended)]}
            log = f"shard {index}: {1200 + index} documents\nwrote tokens.bin\n"
        elif index < done + 8:
            step.status, step.ended = Status.RUNNING, None
            step.started = now - 9 + index % 8
            step.progress = Progress(300 + 37 * (index % 8), 1200)
            log = f"shard {index}: {1200 + index} documents\n300 documents\n"
        else:
            step.status, step.started, step.ended = Status.NOT_STARTED, None, None
            log = ""
        if index in (217, 400):
            step.status = Status.FAILED
            log += (
                "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe4 in position 4711: invalid continuation byte\n"
            )
            step.outputs, step.metrics = [], {}
        _with_log(step, folder, log)
        if step.status is Status.FAILED:
            step.verdict = Verdict(
                name, log.splitlines()[-1], 0, 0, 1, None, step.ranks[0].log, tuple(log.splitlines())
            )
        steps.append(step)
    names = tuple(step.name for step in steps[1:])
    steps.append(make_step("merge", names, component="merge_tokens", **WAITING))
    steps.append(_waiting_training("train", ("merge",)))
    steps.append(make_step("evaluate", ("train",), component="evaluate_language_model", **WAITING))
    run = make_run(*steps, display_name="Tokenize the corpus", name="tokenize_corpus", source="pipelines/corpus.py")
    run.created, run.status, run.ended, run.folder, run.id = begin, Status.RUNNING, None, str(folder), folder.name
    return run, now


def failing_training(folder: Path, instances: int = 2, processes: int = 8) -> tuple[RunRecord, float]:
    """A training on `instances` x `processes` ranks, one of which has failed, and the time now."""
    ranks = instances * processes
    broken = min(11, ranks - 1)
    prepare = make_step("prepare", component="prepare_images", ended=BEGIN + 9.0)
    prepare.inputs = {"size": "224"}
    prepare.outputs = [OutputRecord("images", "uri_folder", str(folder / "prepare/named-outputs/images"))]
    _with_log(prepare, folder, "1,797 images\nwrote train.npz, test.npz\n")
    train = _waiting_training("train", ("prepare",), instances, processes)
    train.status, train.started, train.ended = Status.FAILED, BEGIN + 9.5, BEGIN + 131.0
    train.inputs = {"images": prepare.outputs[0].path, "epochs": "20", "learning_rate": "0.02", "strategy": "ddp"}
    train.metrics = {
        "train_loss": [
            Point(10 * i, 2.3 * math.exp(-i / 14) + 0.05 * math.sin(i), BEGIN + 12 + 3 * i) for i in range(40)
        ],
        "validation_loss": [Point(50 * i, 2.2 * math.exp(-i / 3) + 0.15, BEGIN + 12 + 15 * i) for i in range(8)],
        "validation_accuracy": [Point(50 * i, 0.97 - 0.85 * math.exp(-i / 2), BEGIN + 12 + 15 * i) for i in range(8)],
    }
    train.progress = Progress(400, 900, 8)
    for rank in range(ranks):
        lines = [f"[rank {rank}] step {10 * i}: loss {2.3 * math.exp(-i / 14):.4f}" for i in range(41)]
        if rank == broken:
            lines += TRACEBACK
        else:
            lines += ["[c10d] connection closed by peer; waiting for the other ranks"]
        log = folder / "train/user_logs" / f"std_log_process_{rank}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("\n".join(lines) + "\n", "utf-8")
        record = RankRecord(rank, rank // processes, rank % processes, f"instance-{rank // processes}", log=str(log))
        record.started, record.ended = BEGIN + 10 + rank / 20, BEGIN + 130
        if rank == broken:
            record.status, record.exit_code, record.ended = Status.FAILED, 1, BEGIN + 128.4
        else:
            record.status, record.signal = Status.CANCELED, "SIGTERM"
        train.ranks.append(record)
    failed = train.ranks[broken]
    train.verdict = Verdict(
        "train",
        "ValueError: loss is NaN at step 401 (learning_rate 0.02)",
        broken,
        broken // processes,
        1,
        None,
        failed.log,
        tuple(Path(failed.log).read_text("utf-8").splitlines()[-6:]),
        "\n".join(TRACEBACK),
    )
    after = [
        make_step("evaluate", ("train", "prepare"), component="evaluate_image_classifier", **WAITING),
        make_step("register", ("evaluate",), component="register_model", **WAITING),
    ]
    run = make_run(prepare, train, *after, display_name="Image classification", name="image_classification")
    run.status, run.ended, run.folder, run.id = Status.FAILED, BEGIN + 131.4, str(folder), folder.name
    run.source, run.inputs = "pipelines/image_classification.py", {"epochs": "20", "learning_rate": "0.02"}
    return run, BEGIN + 140


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 112, in <module>',
    "    main()",
    '  File "train.py", line 87, in main',
    "    loss = check_finite(step, loss)",
    '  File "train.py", line 41, in check_finite',
    '    raise ValueError(f"loss is NaN at step {step} (learning_rate {rate})")',
    "ValueError: loss is NaN at step 401 (learning_rate 0.02)",
]


def _waiting_training(name: str, needs: tuple[str, ...], instances: int = 2, processes: int = 8) -> StepRecord:
    step = make_step(name, needs, component="train_image_classifier", distribution="pytorch", **WAITING)
    step.instance_count, step.process_count_per_instance = instances, processes
    return step


def _with_log(step: StepRecord, folder: Path, text: str) -> StepRecord:
    """Give a step that has started one rank, with a log."""
    if step.started is None:
        return step
    log = folder / step.name / "user_logs/std_log_process_0.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text, "utf-8")
    rank = RankRecord(0, 0, 0, "instance-0", step.status, step.started, step.ended, log=str(log))
    if step.ended is not None:
        rank.exit_code = 1 if step.status is Status.FAILED else 0
    step.ranks = [rank]
    return step
