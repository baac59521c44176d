"""Programs of Ray, each broken in one way: the argument is its name."""

import os
import sys

import ray

ray.init()


@ray.remote(num_cpus=0.5)
def read(shard):
    if shard == 7:
        raise KeyError("shard 7")
    return shard


@ray.remote(num_cpus=0.5)
class Worker:
    def stop(self):
        os._exit(3)


@ray.remote(num_gpus=8)
def infer():
    return 1


def exception_in_a_task():
    print(sum(ray.get([read.remote(shard) for shard in range(10)])))


def actor_that_exits():
    ray.get(Worker.remote().stop.remote())


def resources_that_nobody_has():
    ray.get(infer.remote())


globals()[sys.argv[1]]()
