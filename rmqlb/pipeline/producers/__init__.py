"""Stage 5: what becomes of every topic's messages while brokers fail; `send_rows.py` is the part without Spark."""
