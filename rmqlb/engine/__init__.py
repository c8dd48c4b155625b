"""RocketMQ's rules as pure functions over `rmqlb.model`; the standard library and nothing else."""
