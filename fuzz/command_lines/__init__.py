"""Random whole command lines over random clusters, each held to what is true of every command line.

`clusters` makes a cluster, `values` the values of options, `lines` a command line, `running` runs it, `alone`, `sums`
and `together` say what must hold, `__main__` puts these together.
"""
