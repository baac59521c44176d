"""Trainings by PyTorch with gloo, each broken in one way: the argument is its name."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

rank = int(os.environ["RANK"])
size = int(os.environ["WORLD_SIZE"])


def join(seconds=600):
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))


def train(steps=5, before=lambda step: None):
    """Train with DDP; `before` is called before each step."""
    join()
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        before(step)
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    return model


def at(number, action):
    """Do it on one rank before the third step."""
    return lambda step: action() if rank == number and step == 2 else None


def uneven_batches():
    train(4 if rank == 2 else 5)
    if rank != 2:
        dist.barrier()


def uneven_batches_and_destroyed_group():
    train(2 if rank == 1 else 6)
    dist.destroy_process_group()


def exits_with_0():
    train(5, at(3, lambda: sys.exit(0)))


def exits_with_256():
    train(5, at(1, lambda: sys.exit(256)))


def exits_with_0_in_a_handler_of_sigterm():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    train(5, at(2, lambda: os.kill(os.getpid(), signal.SIGTERM)))


def ends_without_cleanup():
    train(5, at(3, lambda: os._exit(0)))


def destroys_its_group_early():
    def leave():
        dist.destroy_process_group()
        print("exporting the model", flush=True)
        time.sleep(1000)

    train(5, at(2, leave))


def handled_exception_and_exit_code_5():
    def fail():
        try:
            open("/data/shard-7.bin")
        except OSError:
            logging.exception("shard 7 is skipped")
        os._exit(5)

    train(5, at(2, fail))


def handled_exception_and_sigkill():
    def fail():
        try:
            int("seven")
        except ValueError:
            logging.exception("line 7 is skipped")
        os.kill(os.getpid(), signal.SIGKILL)

    train(5, at(1, fail))


def handled_exception_and_hang():
    def fail():
        try:
            int("seven")
        except ValueError:
            logging.exception("line 7 is skipped")
        time.sleep(1000)

    train(5, at(3, fail))


def failed_command():
    train(5, at(3, lambda: subprocess.run(["cp", "/data/shard-7.bin", "."], check=True)))


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def unprintable_exception():
    def fail():
        raise Unprintable(7)

    train(5, at(2, fail))


def monitored_barrier():
    join()
    if rank == 3:
        time.sleep(8)
    dist.monitored_barrier(timeout=timedelta(seconds=3))


def wrong_port():
    if rank == 3:
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
    train()


def wrong_master():
    if rank == 2:
        os.environ["MASTER_ADDR"] = "localhost"
    train()


def two_orders_of_groups():
    join()
    first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
    if rank == 0:
        dist.barrier(first)
        dist.barrier(second)
    elif rank == 1:
        dist.barrier(second)
        dist.barrier(first)
    dist.barrier()


def thread_that_does_not_end():
    train()
    if rank == 1:
        threading.Thread(target=threading.Event().wait, name="uploader").start()
    dist.barrier()
    dist.destroy_process_group()


def exception_group():
    def fail():
        raise ExceptionGroup("2 shards cannot be read", [ValueError("bad shard 7"), OSError("bad shard 8")])

    train(5, at(2, fail))


def exception_in_a_thread():
    ready = threading.Event()

    def load():
        raise ValueError("bad shard 7")

    def wait():
        threading.Thread(target=load, daemon=True).start()
        ready.wait()

    train(5, at(2, wait))


class Shards(Dataset):
    def __init__(self, action):
        self.action = action

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if rank == 1 and index == 5:
            self.action()
        return torch.ones(4)


def load(action):
    def before(step):
        if step == 2:
            for _ in DataLoader(Shards(action), batch_size=2, num_workers=2):
                pass

    train(5, before)


def read_bad_shard():
    raise ValueError("bad shard 5")


def exception_in_a_data_loader():
    load(read_bad_shard)


def killed_data_loader():
    load(lambda: os.kill(os.getpid(), signal.SIGKILL))


def wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def deadlocked_data_loader():
    load(wait_for_lock)


def exits_with_137():
    train(5, at(2, lambda: sys.exit(137)))


def ends_by_sigterm():
    train(5, at(1, lambda: os.kill(os.getpid(), signal.SIGTERM)))


def aborts():
    train(5, at(3, os.abort))


def ends_by_sigalrm():
    train(5, at(3, lambda: (signal.alarm(1), time.sleep(1000))))


def keyboard_interrupt():
    def fail():
        raise KeyboardInterrupt

    train(5, at(2, fail))


def recursion():
    def visit(node):
        return visit([node])

    train(5, at(1, lambda: visit(0)))


def deadlocked_lock():
    train(5, at(3, wait_for_lock))


def waits_for_a_file():
    def wait():
        while not os.path.exists("/tmp/rank-0-is-done"):
            time.sleep(0.1)

    train(5, at(1, wait))


def waits_for_a_command():
    train(5, at(2, lambda: subprocess.run(["sleep", "1000"])))


def refused_data_server():
    import socket

    train(5, at(1, lambda: socket.create_connection(("127.0.0.1", 9))))


def command_that_times_out():
    train(5, at(3, lambda: subprocess.run(["sleep", "1000"], timeout=2)))


def pipe_to_a_command_that_ended():
    def write():
        with subprocess.Popen(["true"], stdin=subprocess.PIPE) as command:
            command.wait()
            command.stdin.write(b"image")
            command.stdin.flush()

    train(5, at(2, write))


def unpicklable_object():
    join()
    found = [None] * size
    dist.all_gather_object(found, (lambda: 1) if rank == 2 else rank)
    dist.barrier()


def other_architecture():
    model = train(2)
    weights = torch.nn.Linear(4, 5 if rank == 1 else 4).state_dict()
    model.module.load_state_dict(weights)
    dist.barrier()


def unused_parameters():
    join()
    model = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])

    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = model

        def forward(self, batch):
            return self.layers[0](batch) if rank == 2 else self.layers[1](self.layers[0](batch))

    parallel = DistributedDataParallel(Branches())
    for _ in range(3):
        parallel(torch.ones(2, 4)).sum().backward()


def receives_what_nobody_sends():
    train(2)
    if rank == 0:
        dist.recv(torch.ones(1), src=3)
    dist.barrier()


def no_cuda():
    torch.ones(4).cuda()


def short_timeout():
    join(4)
    for step in range(5):
        if rank == 1 and step == 2:
            time.sleep(1000)
        dist.all_reduce(torch.ones(1))


def key_of_the_store_that_nobody_sets():
    train(2)
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.set("rank-0-ready", "1")
    if rank == 1:
        store.wait(["ready"], timedelta(seconds=3))
    dist.barrier()


def memory_limit():
    import resource

    def fail():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))
        torch.ones(1 << 34)

    train(5, at(3, fail))


def exit_with_a_message():
    train(5, at(2, lambda: sys.exit("no images in shard 7")))


def arguments_of_one_rank():
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    join()
    dist.barrier()
    parser.parse_args(["--epochs", "ten" if rank == 3 else "10"])
    dist.barrier()


def missing_data_everywhere():
    join()
    open("/data/train.csv")


def instance_that_does_not_mount():
    def wait():
        while rank >= 2:
            time.sleep(1)

    train(5, lambda step: wait())


def process_pool_that_breaks():
    from concurrent.futures import ProcessPoolExecutor

    def work():
        with ProcessPoolExecutor(1) as pool:
            pool.submit(os._exit, 1).result()

    train(5, at(2, work))


def spawned():
    """Two ranks on each instance, started by torch.multiprocessing."""
    torch.multiprocessing.spawn(spawned_rank, nprocs=2)


def spawned_rank(local):
    global rank
    rank = int(os.environ["NODE_RANK"]) * 2 + local
    dist.init_process_group("gloo", rank=rank, world_size=4)
    for step in range(5):
        if rank == 3 and step == 2:
            raise ValueError("bad shard 7")
        dist.all_reduce(torch.ones(1))


def fully_sharded_and_skipped():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    join()
    model = torch.nn.Linear(4, 4)
    fully_shard(model, mesh=init_device_mesh("cpu", (size,)))
    for step in range(5):
        if not (rank == 3 and step == 2):
            model(torch.ones(2, 4)).sum().backward()
    dist.barrier()


def divides_by_zero():
    train(5, at(1, lambda: 1 // 0))


def trains():
    train()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
