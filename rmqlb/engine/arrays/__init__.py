"""Arrays that the vectorized rules share: lanes of trials, ragged lists, and the engine's random numbers over arrays.

Imports numpy and the standard library, nothing else.
"""
