"""Why a group is as it is, and several groups, the worst first."""
