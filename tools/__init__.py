"""Programs of maintainers; no part of what is installed."""
