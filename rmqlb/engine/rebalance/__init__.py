"""The consumer side over time: every member runs its own loop on its own clock (`simulate_group`)."""
