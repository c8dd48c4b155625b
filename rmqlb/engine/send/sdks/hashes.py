"""What SDKs make of a key: the hashes whose numbers decide which queue it goes to.

Each is the published function; which SDK takes which, and with what key, is in `profile.py`.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256 as _sha256

_64 = 0xFFFFFFFFFFFFFFFF
_MURMUR, _MURMUR_SEED = 0xC6A4A7935BD1E995, 0xC70F6907
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
_SIP_STATE = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
GUAVA_KEY = bytes(range(16))
"""The key of Guava's `Hashing.sipHash24()`."""


def fnv1a_32(data: bytes) -> int:
    """FNV-1a with 32 bits, as Go's `hash/fnv`.

    >>> hex(fnv1a_32(b"foobar"))
    '0xbf9cf968'
    """
    state = _FNV_OFFSET
    for byte in data:
        state = (state ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return state


# Several SDKs take it of the same keys, before and after a change.
@lru_cache(maxsize=1 << 17)
def sip_hash_24(data: bytes, key: bytes = GUAVA_KEY) -> int:
    """SipHash-2-4 with its 64 bits, without a sign; the key has 16 bytes.

    >>> hex(sip_hash_24(bytes(range(15))))
    '0xa129ca6149be45e5'
    """
    first, second = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    state = tuple(constant ^ part for constant, part in zip(_SIP_STATE, (first, second) * 2, strict=True))
    whole = len(data) & ~7
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, whole, 8)]
    # The last word has what is left, and the length in its highest byte.
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    for word in words:
        a, b, c, d = state
        a, b, c, d = _sip_round(*_sip_round(a, b, c, d ^ word))
        state = (a ^ word, b, c, d)
    a, b, c, d = state
    state = (a, b, c ^ 0xFF, d)
    for _ in range(4):
        state = _sip_round(*state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = a + b & _64
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c = c + d & _64
    d = _rotated(d, 16) ^ c
    a = a + d & _64
    d = _rotated(d, 21) ^ a
    c = c + b & _64
    b = _rotated(b, 17) ^ c
    return a, b, _rotated(c, 32), d


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _64


def sha256(data: bytes) -> int:
    """SHA-256 as one number, its first byte the highest."""
    return int.from_bytes(_sha256(data).digest(), "big")


def libstdcxx_hash(data: bytes) -> int:
    """`std::hash<std::string>` of GNU's C++ library where `size_t` has 64 bits: Murmur of 64 bits, unaligned.

    Other libraries (LLVM's, Microsoft's) and 32 bits give other numbers.
    """
    state = _MURMUR_SEED ^ len(data) * _MURMUR & _64
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * _MURMUR & _64
        state = (state ^ (word ^ word >> 47) * _MURMUR & _64) * _MURMUR & _64
    if data[whole:]:
        state = (state ^ int.from_bytes(data[whole:], "little")) * _MURMUR & _64
    state = (state ^ state >> 47) * _MURMUR & _64
    return state ^ state >> 47


def consistent_bucket(code: int, buckets: int) -> int:
    """Guava's `Hashing.consistentHash` of a Java int in a number of buckets (at least 1): jump consistent hash.

    With a bucket more at the end a key stays where it is, or goes to the new bucket.

    >>> [consistent_bucket(-1207111310, buckets) for buckets in (1, 3, 4, 8, 24)]
    [0, 0, 3, 3, 3]
    """
    state, candidate = code & _64, 0
    while True:
        state = state * 2862933555777941757 + 1 & _64
        after = int((candidate + 1) / (((state >> 33) + 1) / 2147483648.0))
        if not 0 <= after < buckets:
            return candidate
        candidate = after
