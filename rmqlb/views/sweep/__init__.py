"""A sweep of failures as a report."""
