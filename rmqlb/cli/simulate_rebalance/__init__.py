"""`rmqlb simulate-rebalance`."""
