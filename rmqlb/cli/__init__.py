"""The command line: declare options, gather, call the engine, show. One verb a file; only this package writes."""
