"""A Spark session, and all that stands between rmqlb and Spark: Java, its process, its log, its errors."""
