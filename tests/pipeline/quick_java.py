"""Options of Java for tests, which run each piece of Spark a few times only."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""For `spark.driver.extraJavaOptions`: what the second compiler would gain it costs, twice over. Without that compiler
Java keeps a fifth of the room for compiled code, 48 MB, which one run of the pipeline fills: so it gets the whole."""
