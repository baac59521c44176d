"""A training whose folder has a module that is named as one of the standard library's."""

import torch
from torch import distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
