"""One Ray task per rank, the same number on every node. The script runs on the head and prints for all ranks."""

import sys

import ray
from place import tell

each = int(sys.argv[1])
ray.init(log_to_driver=False)
nodes = sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"])


@ray.remote(num_cpus=0.5)
def number(rank: int) -> tuple[int, str]:
    return rank + 1, ray.util.get_node_ip_address()


results = [
    number.options(resources={f"node:{node}": 0.01}).remote(each * index + local)
    for index, node in enumerate(nodes)
    for local in range(each)
]
answers = ray.get(results)
for rank, (_, node) in enumerate(answers):
    if node == nodes[rank // each]:
        total = float(sum(value for value, _ in answers))
        tell(rank=rank, world_size=len(answers), local_rank=rank % each, total=total)
