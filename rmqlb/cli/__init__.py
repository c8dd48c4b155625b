"""The command line: declare options, gather, call the engine, show. One verb a file; only this package writes.

Rules of this folder:
- What makes no sense raises a `UsageError` that names the option as typed, what a source lacks a `DataError`; a source
  that cannot be reached an `EndpointError`. All of them end in `error_boundary`, with the exit code for it.
- Typer reads annotations when the program starts: files with commands and options have no `annotations` from
  `__future__`.
"""
