"""The command line: declare options, call a verb, show its result. One command per file; only this package writes.

Rules of this folder:
- Nonsense raises a `UsageError` that names the option as typed, missing data a `DataError`, and an unreachable source
  an `EndpointError`. All of them end in `error_boundary`, with their exit codes.
- Typer reads annotations when the program starts: files with commands and options have no `annotations` from
  `__future__`.
"""
