"""A training by Ray: the head starts an actor for each rank."""

import os

import ray
import sabotage

sabotage.strike("start", 0)
ray.init(runtime_env={"env_vars": {name: text for name, text in os.environ.items() if name.startswith("FAULT")}})


@ray.remote(num_cpus=0.5)
class Worker:
    def __init__(self, rank):
        self.rank = rank

    def train(self, step):
        sabotage.strike("before", self.rank, step)
        return self.rank


nodes = sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"])
workers = [Worker.options(resources={f"node:{nodes[rank // 2]}": 0.01}).remote(rank) for rank in range(4)]
for step in range(sabotage.STEPS):
    assert sum(ray.get([worker.train.remote(step) for worker in workers])) == 6
sabotage.strike("after", 0)
