"""What results come to as metrics of Prometheus, a file a result."""
