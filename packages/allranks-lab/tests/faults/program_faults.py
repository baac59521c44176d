"""Faults of single programs, beside the table of faults and stacks: for each the right verdict."""

from dataclasses import dataclass

from allranks.contract.layout import Layout
from allranks.local.stacks import ACCELERATE, DEEPSPEED, HOROVOD, LIGHTNING, MPI, PYTORCH, RAY, TENSORFLOW
from allranks_lab.stacks.launches import TORCHRUN, Launch

ANY = (0, 1, 2, 3, None)

TWO_BY_TWO = Layout(2, 2)
ENDED = "it ended with exit code 0"


@dataclass(frozen=True)
class ProgramFault:
    """A program that breaks itself.

    what:    happens, in words
    launch:  of the program
    cause:   a pattern of the verdict's reason and line, or of a note where the step completes
    ranks:   that the verdict may blame; None among them: nobody
    completes: whether the step may complete, as on Azure ML; with ranks, they are blamed where it does not
    layout:  of the job
    """

    what: str
    launch: Launch
    cause: str
    ranks: tuple[int | None, ...]
    completes: bool = False
    layout: Layout = TWO_BY_TWO

    @property
    def name(self) -> str:
        return f"{self.launch.stacks[0].name}: {self.what}"


def _torch(what: str, name: str, cause: str, *ranks: int | None, by: str = "pytorch") -> ProgramFault:
    return ProgramFault(what, Launch("", (PYTORCH,), by, f"python torch_program.py {name}"), cause, ranks)


def _launched(what: str, name: str, cause: str, options: str = "") -> ProgramFault:
    start = TORCHRUN.replace("torchrun ", f"torchrun {options}", 1)
    return ProgramFault(
        what, Launch("", (PYTORCH,), "pytorch/node", f"{start} launched_program.py {name}"), cause, (3,)
    )


def _mpi(what: str, name: str, cause: str, *ranks: int) -> ProgramFault:
    return ProgramFault(what, Launch("", (MPI,), "mpi", f"python mpi_program.py {name}"), cause, ranks)


def _horovod(what: str, name: str, cause: str, rank: int) -> ProgramFault:
    return ProgramFault(what, Launch("", (HOROVOD,), "mpi", f"python horovod_program.py {name}"), cause, (rank,))


def _deepspeed(what: str, name: str, cause: str, rank: int) -> ProgramFault:
    return ProgramFault(
        what, Launch("", (DEEPSPEED,), "pytorch", f"python deepspeed_program.py {name}"), cause, (rank,)
    )


def _tensorflow(what: str, name: str, cause: str, *ranks: int) -> ProgramFault:
    launch = Launch("", (TENSORFLOW,), "tensorflow", f"python tensorflow_program.py {name}")
    return ProgramFault(what, launch, cause, ranks or (1,), layout=Layout(2, 1))


def _ray(what: str, name: str, cause: str, rank: int | None = 0) -> ProgramFault:
    return ProgramFault(what, Launch("", (RAY,), "ray", f"python ray_program.py {name}"), cause, (rank,))


def _shell(what: str, command: str, cause: str, *ranks: int, completes: bool = False) -> ProgramFault:
    return ProgramFault(what, Launch("", (PYTORCH,), "pytorch", command), cause, ranks, completes)


PROGRAM_FAULTS = (
    _torch("a rank has one batch fewer", "uneven_batches", ENDED, 2),
    _torch("a rank has four batches fewer, and destroys its group", "uneven_batches_and_destroyed_group", ENDED, 1),
    _torch("sys.exit(0)", "exits_with_0", ENDED, 3),
    _torch("sys.exit(256)", "exits_with_256", ENDED, 1),
    _torch("sys.exit(0) in a handler of SIGTERM", "exits_with_0_in_a_handler_of_sigterm", ENDED, 2),
    _torch("os._exit(0)", "ends_without_cleanup", ENDED, 3),
    _torch("destroys its group, and goes on", "destroys_its_group_early", r"time\.sleep\(1000\)|destroy", 2),
    _torch("a handled exception, then os._exit(5)", "handled_exception_and_exit_code_5", "^exit code 5", 2),
    _torch("a handled exception, then SIGKILL", "handled_exception_and_sigkill", "^ended by SIGKILL", 1),
    _torch("a handled exception, then a hang", "handled_exception_and_hang", r"is at `time\.sleep\(1000\)`", 3),
    _torch(
        "subprocess.run(check=True)", "failed_command", r"CalledProcessError: Command .*cp.*torch_program\.py:\d+", 3
    ),
    _torch("an exception whose __str__ raises", "unprintable_exception", r"Unprintable: <exception str\(\) failed>", 2),
    _torch("monitored_barrier", "monitored_barrier", r"monitored_?[bB]arrier|is at `time\.sleep", 3),
    _torch("another MASTER_PORT", "wrong_port", "port|:6106", 3),
    _torch("another MASTER_ADDR", "wrong_master", "localhost", 2),
    _torch("two groups in another order", "two_orders_of_groups", r"barrier.*_program\.py:\d+.*_program\.py:\d+", *ANY),
    _torch("a thread that does not end", "thread_that_does_not_end", "thread", 1),
    _torch("an exception group", "exception_group", "bad shard 7", 2),
    _torch("an exception in a thread that another waits for", "exception_in_a_thread", "ValueError: bad shard 7", 2),
    _torch("an exception in a data loader", "exception_in_a_data_loader", "^ValueError: bad shard 5", 1),
    _torch(
        "a data loader that is killed", "killed_data_loader", "DataLoader worker.*(killed by signal|unexpectedly)", 1
    ),
    _torch("a deadlock in a data loader", "deadlocked_data_loader", r"lock\.acquire\(\)", 1),
    _torch("sys.exit(137)", "exits_with_137", "^exit code 137", 2),
    _torch("SIGTERM to itself", "ends_by_sigterm", "^ended by SIGTERM", 1),
    _torch("os.abort()", "aborts", "^ended by SIGABRT", 3),
    _torch("SIGALRM", "ends_by_sigalrm", "^ended by SIGALRM", 3),
    _torch("KeyboardInterrupt", "keyboard_interrupt", "KeyboardInterrupt|SIGINT", 2),
    _torch("endless recursion", "recursion", "^RecursionError", 1),
    _torch("a deadlocked lock", "deadlocked_lock", r"is at `lock\.acquire\(\)`", 3),
    _torch("waits for a file", "waits_for_a_file", r"is at `(time\.sleep\(0\.1\)|while not os)", 1),
    _torch("waits for a command", "waits_for_a_command", r"is at `.*sleep.*1000", 2),
    _torch("a data server that refuses", "refused_data_server", "^ConnectionRefusedError", 1),
    _torch("a command that takes too long", "command_that_times_out", "TimeoutExpired", 3),
    _torch("a pipe to a command that has ended", "pipe_to_a_command_that_ended", "^BrokenPipeError", 2),
    _torch("an object that cannot be pickled", "unpicklable_object", "pickle", 2),
    _torch("weights of another model", "other_architecture", r"Error\(s\) in loading state_dict", 1),
    _torch("parameters without a gradient", "unused_parameters", "Expected to have finished reduction", 2),
    _torch("recv without a send", "receives_what_nobody_sends", "recv", 0, 3),
    _torch("CUDA in a build without it", "no_cuda", "^AssertionError: Torch not compiled with CUDA", *ANY),
    _torch("a hang with a time-out of 4 s", "short_timeout", r"time\.sleep\(1000\)", 1),
    _torch("a key of the store that nobody sets", "key_of_the_store_that_nobody_sets", "waits in wait", 1),
    _torch("a limit of memory", "memory_limit", "can't allocate memory|MemoryError", 3),
    _torch("sys.exit with a message", "exit_with_a_message", "no images in shard 7", 2),
    _torch("an argument of one rank", "arguments_of_one_rank", "invalid int value: 'ten'", 3),
    _torch("a missing file on every rank", "missing_data_everywhere", r"^FileNotFoundError.*train\.csv", *ANY),
    _torch("an instance that waits", "instance_that_does_not_mount", r"is at `(time\.sleep\(1\)|while rank)", 2, 3),
    _torch("a process pool that breaks", "process_pool_that_breaks", "BrokenProcessPool", 2),
    _torch("torch.multiprocessing.spawn", "spawned", "^ValueError: bad shard 7", 1, 3, by="pytorch/node"),
    _torch("FSDP on all ranks but one", "fully_sharded_and_skipped", "all_?gather|reduce_?scatter|barrier", 3),
    _shell("a module that shadows queue", "cd shadow && python train.py", r"queue\.py.*standard library", *ANY),
    _mpi("MPI_Abort", "aborts", "exit code 7|MPI_Abort", 2),
    _mpi("one allreduce fewer", "returns_early", "it exits|exit code 0", 1),
    _mpi("another tag", "waits_for_another_tag", "recv", 3),
    _mpi("one message too many expected", "gathers_too_many", "recv", 0),
    _mpi("another communicator", "other_communicator", r"Barrier.*_program\.py:\d+", 3),
    _mpi("os._exit(0) before MPI_Finalize", "ends_before_finalize", "exit code 0|[fF]inalize", 2),
    _horovod("one batch fewer", "uneven_batches", "exit code 0|it exits", 3),
    _horovod("another name", "other_name", "waits in|accuracy", 2),
    _horovod("raise from", "raised_from", "^RuntimeError: the index is damaged", 1),
    _deepspeed("another batch size", "batch_size_of_one_rank", "AssertionError.*batch", 1),
    _deepspeed("a checkpoint of rank 0 alone", "checkpoint_of_rank_0", "barrier|checkpoint", 0),
    _tensorflow("two batches fewer", "uneven_batches", "exit code 0|it exits"),
    _tensorflow("a damaged record", "bad_record", "record 3 is damaged"),
    # Both say that they are task 0: TensorFlow refuses the one that connects last.
    _tensorflow("the index of another worker", "index_of_another", "TF_CONFIG|address|bind|start|task", 0, 1),
    _ray("an exception in a task", "exception_in_a_task", "KeyError.*shard 7"),
    _ray("an actor that exits", "actor_that_exits", "ActorDied"),
    _ray("resources that nobody has", "resources_that_nobody_has", "no task of Ray runs", None),
    ProgramFault(
        "beside mpi4py",
        Launch("", (LIGHTNING,), "pytorch", "python lightning_program.py bad_batch"),
        "^ValueError: bad batch",
        (1,),
    ),
    ProgramFault(
        "one gather more", Launch("", (ACCELERATE,), "pytorch", "python accelerate_program.py"), "all_?gather", (2,)
    ),
    _launched("a worker with os._exit(9)", "exit_code", "^exit code 9"),
    _launched("a worker that ends early", "uneven_batches", "its last collective is all_reduce.*wait for it"),
    _launched("a worker that fails twice", "exception", "^ValueError: bad shard 7", "--max-restarts=1 "),
    _shell("set -e", "bash missing_file.sh", "exit code 1|cp: cannot stat", 2),
    _shell("a shell that reports SIGKILL", "bash killed_child.sh", "^ended by SIGKILL", 1),
    _shell(
        "| tee", "python torch_program.py divides_by_zero | tee train.log", "rank 1.*ZeroDivisionError", completes=True
    ),
    # Seldom, gloo does not tell the other ranks that the connection is lost: they hang, and rank 1 is the cause.
    _shell("|| true", "python torch_program.py divides_by_zero || true", "ZeroDivisionError", 1, completes=True),
    _shell(
        "| head", "python torch_program.py divides_by_zero | head -n 3", "rank 1.*ZeroDivisionError", completes=True
    ),
)
