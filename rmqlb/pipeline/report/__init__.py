"""The last stage: a warehouse as tables to hand on and one page to read.

Rules of this folder:
- The queries in `contents.py` and `subject_*.py` ask Spark for a bounded number of rows each; `export.py` alone copies
  tables.
- Their sections, `page.py`, `charts.py` and `svg.py` know no Spark: plain values in, text out, and equal values give
  equal bytes.
- Every text from the data is made visible (control and direction characters) and escaped where it enters the page.
"""
