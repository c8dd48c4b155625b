"""The last stage: a warehouse as tables to hand on and one page to read.

Rules of this folder:
- `gather*.py` alone ask Spark for figures, a bounded number of rows each; `export.py` alone copies tables.
- `values.py`, `sections*.py`, `page.py`, `charts.py` and `svg.py` know no Spark: plain values in, text out, and equal
  values give equal bytes.
- Every text from the data is made visible (control and direction characters) and escaped where it enters the page.
"""
