"""How many consumers a group should have: every size that is asked about, held against what is asked of it."""
