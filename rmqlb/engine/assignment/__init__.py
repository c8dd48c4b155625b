"""Who owns which queue once a group has rebalanced, and what is known of its members and their strategy."""
