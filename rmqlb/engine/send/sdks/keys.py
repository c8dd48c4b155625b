"""Where a key goes: the place in a queue list that an SDK gives a message group or sharding key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rmqlb.engine.send.java_hash import hash_code
from rmqlb.engine.send.sdks.hashes import consistent_bucket, fnv1a_32, libstdcxx_hash, sha256, sip_hash_24
from rmqlb.engine.send.sdks.profile import SdkProfile
from rmqlb.errors import DataError, UsageError
from rmqlb.model.message_queue import MessageQueue, sort_queues

_SIGN = 1 << 63


def queue_of_key(queues: Sequence[MessageQueue], key: str, profile: SdkProfile) -> MessageQueue:
    """The queue that an SDK picks for a key, from its own list of queues.

    Raises:
        UsageError: the SDK picks at random, or refuses the key.
        DataError: it has no queue to pick from.
    """
    return picker(queues, profile)(key)


def picker(queues: Sequence[MessageQueue], profile: SdkProfile) -> Callable[[str], MessageQueue]:
    """What finds the queue of a key, for many keys; it raises what `queue_of_key` does."""
    listed = keyed_queues(queues, profile)
    return lambda key: listed[place_of_key(len(listed), key, profile)]


def keyed_queues(queues: Sequence[MessageQueue], profile: SdkProfile) -> list[MessageQueue]:
    """Of the queues those that the SDK sends keys to, in its order (raises DataError when there are none)."""
    listed = list(queues)
    if profile.rotation == "first-queues":
        # Node compares the queue's number with the number of a master broker (`PublishingLoadBalancer`).
        listed = [queue for queue in listed if queue.queue_id == 0]
    elif profile.hash == "proxy":
        listed = sort_queues(set(listed))
    if not listed:
        raise DataError(f"a producer of {profile.name} has no queue to pick from")
    return listed


def place_of_key(size: int, key: str, profile: SdkProfile) -> int:
    """The place of a key in a list of this number of queues (raises UsageError)."""
    match profile.hash:
        case "random":
            raise UsageError(
                "string.GetHashCode differs from process to process",
                prefix=f"{profile.name} cannot be predicted: ",
                hint="each process of such producers sends a message group to another queue",
            )
        case "proxy":
            _not_blank(key, profile)
            return consistent_bucket(hash_code(key), size)
        case "java":
            return abs(hash_code(key)) % size
        case "fnv-1a":
            _not_blank(key, profile)
            return fnv1a_32(_bytes(key, profile)) % size
        case "siphash":
            code = sip_hash_24(_bytes(key, profile))
            return (code - (1 << 64) if code & _SIGN else code) % size
        case "siphash-zero":
            return sip_hash_24(_bytes(key, profile), bytes(16)) % size
        case "siphash-reversed":
            return int.from_bytes(sip_hash_24(_bytes(key, profile)).to_bytes(8, "little"), "big") % size
        case "sha-256":
            return sha256(_bytes(key, profile)) % size
        case "libstdc++":
            return libstdcxx_hash(_bytes(key, profile)) % size


def _not_blank(key: str, profile: SdkProfile) -> None:
    if not key or (profile.hash == "proxy" and not key.strip()):
        raise UsageError(f"{profile.name}: a message without a key goes to any queue")


def _bytes(key: str, profile: SdkProfile) -> bytes:
    """The key in UTF-8; of half a surrogate pair each language makes something else."""
    if key.isascii() or not any("\ud800" <= character <= "\udfff" for character in key):
        return key.encode()
    if profile.name == "java-grpc":
        return key.encode(errors="replace")
    if profile.name == "nodejs-grpc":
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in key).encode()
    raise UsageError(f"{key!a}: half of a surrogate pair, which {profile.name} cannot send")
