"""Random whole command lines over random clusters, each held to what is true of every command line.

`snapshots` makes a cluster, `options` the values of options, `lines` a command line of them, `running` runs it, `alone`
and `together` say what must hold, `trying` puts these together, `__main__` is the program.
"""
