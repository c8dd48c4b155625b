"""The NameServers and brokers themselves as a source, over sockets."""
