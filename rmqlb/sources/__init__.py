"""Where a snapshot comes from. Each source ends in one `ClusterSnapshot`; the engine never sees a client or a file."""
