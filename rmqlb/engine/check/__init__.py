"""A policy on a snapshot: each limit is a pure measure, and what cannot be measured is never taken for good."""
