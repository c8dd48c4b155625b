"""What a RocketMQ producer does with its messages: which queue it picks, what it retries, which broker it isolates.

A ladder: `profile` (what changed from version to version) ← `publish_info` and `fault` (one pick) ← `simulation` (the
clock and the threads) ← `sync`, `async_oneway` and `with_selector` (one message) ← `simulate` (all) ← `trials` (many).
"""
