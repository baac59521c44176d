"""The stacks by which trainings are spread over ranks, every launch of each, and trials that show whether they work."""
