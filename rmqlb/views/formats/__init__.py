"""A report as text: for people, for machines, for CI."""
