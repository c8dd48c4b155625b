"""RocketMQ's Dashboard as a source, over HTTP."""
