"""The stacks for distributed training, every launch of each, and trials that check whether they work."""
