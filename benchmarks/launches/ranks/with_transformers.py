"""A rank that builds a small model of Transformers, and makes its first all-reduce in the model's backward pass."""

import torch
from reached import reached
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from transformers import BertConfig, BertForSequenceClassification

distributed.init_process_group("gloo")
config = BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100)
model = DistributedDataParallel(BertForSequenceClassification(config))
model(input_ids=torch.ones(2, 8, dtype=torch.long), labels=torch.zeros(2, dtype=torch.long)).loss.backward()
reached(distributed.get_rank(), distributed.barrier)
distributed.destroy_process_group()
