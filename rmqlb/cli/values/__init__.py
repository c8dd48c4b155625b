"""What is typed after an option, read: each error names the option."""
