"""Who owns each queue."""
