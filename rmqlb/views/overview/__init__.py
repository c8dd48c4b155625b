"""All groups at a glance, and the consumers of one."""
