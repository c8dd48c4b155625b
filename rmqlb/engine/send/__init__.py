"""The simulation of producers: `simulate` runs a scenario; `fault` is one pick, `profile` what versions change."""
