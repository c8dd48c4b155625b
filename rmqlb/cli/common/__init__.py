"""What several commands share: options and their values, the reading of sources, what is shown. Imports no command."""
