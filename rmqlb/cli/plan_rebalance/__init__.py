"""`rmqlb plan-rebalance`."""
