"""What `--fail-on` can ask: the figures of each result by name, and conditions on them."""
