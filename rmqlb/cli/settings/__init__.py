"""What sets an option when the line does not: files and environment, and which of them counts."""
