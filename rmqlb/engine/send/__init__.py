"""What a RocketMQ producer does with its messages: which queue it picks, what it retries, whom it avoids.

A ladder: `profile` (what changed from version to version) ← `publish_info` and `fault` (one pick) ← `producer` (one
message) ← `simulate` (all of them).
"""
