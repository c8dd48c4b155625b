"""What rmqlb costs: its start-up, its allocation of whole groups, and its memory on a large cluster."""
