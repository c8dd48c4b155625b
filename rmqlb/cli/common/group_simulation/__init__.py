"""What simulate-rebalance and plan-rollout share: options, their values, events, and the scenario made of them."""
