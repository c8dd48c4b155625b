"""Every loss of consumers, brokers, hosts and zones, single and in pairs: what each makes of groups and topics."""
