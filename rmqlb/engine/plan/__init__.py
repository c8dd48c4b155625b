"""What a change makes of a group: owners before and after."""
