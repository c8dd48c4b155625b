"""`rmqlb simulate-send`: its options, their values, the scenario made of them, and what is shown."""
