"""Why a group is as it is: rules over typed evidence, and hypotheses compared with the observed owners."""
