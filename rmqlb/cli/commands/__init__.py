"""The commands: one verb a file, or a folder where verbs stand under a noun."""
