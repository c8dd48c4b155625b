"""A rolling restart or a change of strategy, planned: which order and pause hurts least (`plan_rollout`)."""
