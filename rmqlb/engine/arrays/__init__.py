"""Arrays that the vectorized rules share: lanes of trials, ragged lists, random numbers."""
