"""TensorFlow trainings by Horovod: mpirun starts the processes, and each trains on its own GPU.

from allranks.runtime.tensorflow import horovod

def train(training: tensorflow.Training) -> None:
    ...                                    # a custom training loop that calls horovod.tensorflow

if __name__ == "__main__":
    horovod.main(train)
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import NoReturn

from allranks.contract import world
from allranks.contract.rank_env import RankEnv
from allranks.contract.world import detect
from allranks.errors import InputError, Problem
from allranks.runtime import libraries, lifecycle
from allranks.runtime.clean_exit import EVICTED
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.tensorflow.cluster import refuse_another_launcher
from allranks.runtime.tensorflow.strategy import Training, limit_threads, single_process_strategy


def main(train: Callable[[Training], None]) -> NoReturn:
    """Initialise Horovod, call train(training) on every rank, and exit. One process without a launcher is rank 0 of 1.

    training.strategy is TensorFlow's default: Horovod adds up what the ranks compute. Exit codes: as of
    `allranks.runtime.tensorflow.main`. mpirun ends the other ranks if one fails.
    """

    def connect(ending: lifecycle.Ending) -> Callable[[], None]:
        env = detect()
        world.check(env)
        _check(env)
        libraries.set_variables(env)
        _initialise(env)
        ending.disconnect = _shut_down
        ending.metrics = Metrics(is_main=env.rank == 0)
        training = Training(
            env.rank, env.world_size, "worker", env.rank == 0, single_process_strategy(), None, ending.metrics
        )
        return partial(train, training)

    lifecycle.run(connect)


def _check(env: RankEnv) -> None:
    """Raise InputError if Horovod is not installed, or another launcher than MPI started several processes."""
    for package in ("tensorflow", "horovod"):
        if find_spec(package) is None:
            found = f"no {package}"
            expected = "an environment with TensorFlow and a Horovod that was built for it"
            raise InputError(Problem(sys.executable, found, expected, "in the project: make tensorflow-horovod"))
    if env.launcher != "mpi":
        refuse_another_launcher(env, "mpi", "TensorFlow with Horovod under another launcher than mpirun")


def _initialise(env: RankEnv) -> None:
    import horovod.tensorflow as hvd  # is checked before
    import tensorflow as tf  # takes seconds, and is checked before

    hvd.init()
    if hvd.size() != env.world_size:
        found = f"{hvd.size()} ranks, while mpirun has started {env.world_size}"
        expected = "a Horovod that was built with the Open MPI that starts it"
        raise InputError(Problem("Horovod", found, expected, "build it again: make tensorflow-horovod"))
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) >= env.local_world_size:
        tf.config.set_visible_devices(gpus[env.local_rank], "GPU")
    else:
        tf.config.set_visible_devices([], "GPU")
        limit_threads(env.local_world_size)


def _shut_down(code: int) -> None:
    if code in (0, EVICTED):
        import horovod.tensorflow as hvd  # is checked before

        hvd.shutdown()
