"""What a RocketMQ producer does with its messages: which queue it picks, what it retries, whom it isolates.

A ladder: `profile` (what changed from version to version) ← `publish_info` and `fault` (one pick) ← `run` (the clock
and the threads) ← `sync`, `offhand` and `keyed` (one message) ← `simulate` (all of them) ← `trials` (many times over).
"""
