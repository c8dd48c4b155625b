"""What simulate-rebalance and plan-rollout share: their values, events, and the scenario made of them."""
