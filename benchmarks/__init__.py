"""What rmqlb costs in time and memory, beside its peers: a script a question, `python -m benchmarks.NAME`."""
