"""Every failure of consumers, brokers, hosts and zones, and the smallest that break a limit."""
