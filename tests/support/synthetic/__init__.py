"""A synthetic fleet, and faults to put into its snapshots."""
