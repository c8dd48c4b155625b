"""Programs that feed rmqlb what nobody thought of; none of them is installed."""
