"""From options to what the engine takes: a source asked, a group found, a scenario put together."""
