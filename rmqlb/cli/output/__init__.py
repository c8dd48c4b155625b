"""What leaves the program: the terminal, the pager, files, looks that repeat, and the exit code of a condition."""
