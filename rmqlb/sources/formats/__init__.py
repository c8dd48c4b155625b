"""Bytes and text to values: JSON in RocketMQ's dialect, YAML, mqadmin's tables, rmqlb's own snapshot; all bounded."""
