"""`rmqlb simulate-receive`: its options, the scenario made of them, and what is shown."""
