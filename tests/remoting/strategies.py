"""Hypothesis strategies for commands and for ways to cut a stream."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from rmqlb.remoting.command import LanguageCode, RemotingCommand, SerializeType

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
FIELDS = st.dictionaries(TEXT, TEXT, max_size=5)
BODY = st.none() | st.binary(min_size=1, max_size=50)

JSON_COMMANDS = st.builds(
    RemotingCommand,
    code=INT32,
    language=st.sampled_from(LanguageCode),
    version=INT32,
    opaque=INT32,
    flag=INT32,
    remark=st.none() | TEXT,
    ext_fields=FIELDS,
    body=BODY,
    serialize_type=st.just(SerializeType.JSON),
)
BINARY_COMMANDS = st.builds(
    RemotingCommand,
    code=INT16,
    language=st.sampled_from(LanguageCode),
    version=INT16,
    opaque=INT32,
    flag=INT32,
    remark=st.none() | TEXT.filter(bool),
    ext_fields=FIELDS,
    body=BODY,
    serialize_type=st.just(SerializeType.ROCKETMQ),
)
COMMANDS = JSON_COMMANDS | BINARY_COMMANDS


@st.composite
def pieces(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    """`stream` cut at some offsets; pieces may be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    return [stream[start:end] for start, end in pairwise([0, *cuts, len(stream)])]
