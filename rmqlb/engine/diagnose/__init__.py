"""Diagnosis of a group: rules over typed evidence, and hypotheses compared with the observed owners."""
