"""The strategies over many groups and topics at once, numpy in, numpy out, each as `rmqlb.engine.allocate` answers."""
