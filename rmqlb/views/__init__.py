"""Results as text: what a result shows is said once (a `Report`), and each format is one reading of it."""
