"""RocketMQ's remoting protocol without a socket, a thread, a clock or chance.

- It imports the standard library and `rmqlb.errors`.
- All bytes from a server give commands or a `ProtocolError`, in bounded memory and linear time.
- It sends only reads: see `codes.READ_ONLY`.
"""
