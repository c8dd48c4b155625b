"""RocketMQ's remoting protocol without a socket, a thread, a clock or chance: bytes in, commands out, and back.

    command ◀── header ◀── frame          acl signs a command
    codes ◀── frame

Rules of this folder:
- It imports the standard library and `rmqlb.errors`.
- Whatever the far side sends gives commands or a `ProtocolError`, nothing else, in bounded memory and linear time.
- What it sends only reads: see `codes.READ_ONLY`.
"""
