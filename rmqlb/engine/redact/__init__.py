"""A snapshot without its names: what still decides about queues is kept, above all the order in which names sort."""
