"""The sizes of groups under CONSISTENT_HASH, for many sets of client IDs at once, numpy in, numpy out."""
