"""`rmqlb plan-rollout`."""
