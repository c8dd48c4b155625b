"""The functions of `rmqlb`, one per command: each returns what `-o json` prints.

An argument means what the option of its name means, and takes the values that the option takes; `--help` of the command
explains the option. For a repeatable option it takes one value or several. None and () stand for an option that is not
given. All functions share:

- `source`: a URL, a file, a snapshot, a parsed document or a reader
- `group`: a group, a pattern, or several where the command takes several; None is the only group of the source
- `fail_on`: conditions, which the result's `conditions` answer
- `progress`: called with the work, the parts that are done, and the number of parts

They raise UsageError for an invalid argument, DataError where the source lacks what is asked for, and EndpointError if
the source cannot be read.
"""
