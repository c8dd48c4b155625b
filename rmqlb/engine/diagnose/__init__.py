"""Why a group is as it is: rules over typed evidence, and hypotheses held against the observed owners."""
