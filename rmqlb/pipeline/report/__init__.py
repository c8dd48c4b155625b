"""The last stage: a warehouse as tables to hand on and one page to read.

The queries in `contents.py` and `subject_*.py` ask Spark for a bounded number of rows each; their sections, `page.py`,
`charts.py` and `svg.py` are plain values in, text out. Equal values give equal bytes. Every text from the data is made
visible (control and direction characters) and escaped where it enters the page.
"""
