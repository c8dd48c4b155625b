"""Values of options about producers and failing brokers. Each error names the option."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from rmqlb.engine.arguments import SELECTOR, quietly
from rmqlb.engine.send.java import hash_code, long_hash_code
from rmqlb.engine.send.scenarios import lognormal
from rmqlb.errors import DataError, UsageError, typed
from rmqlb.model import send_scenario as model
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Failure, Latency, Moment, Reaction, Selector
from rmqlb.model.simulate_send import HotKey, KeySpread
from rmqlb.model.snapshot import close_names, suggestion
from rmqlb.remoting.codes import ResponseCode
from rmqlb.sources.user_files.text_file import read_text
from rmqlb.verbs.amounts import count, duration_us, one_of
from rmqlb.verbs.parse import lines_of, must_differ
from rmqlb.verbs.strategies import from_file, is_file

_HOT_KEYS = 10
_FAILURES = [code.name for code in ResponseCode if code is not ResponseCode.SUCCESS]
_BROKER_COLUMNS = ("brokername", "broker")
_LATENCY_COLUMNS = ("latencyms", "latency", "ms", "tookms", "took")
_LONGEST_MS = 24 * 3600 * 1000
_SHOWN = 5
_KEY_TYPES = ("string", "int", "long")


def failures(texts: Sequence[str], brokers: Sequence[str], topic: str, notices: str | None) -> tuple[Failure, ...]:
    """`--fail BROKER[@FROM-TO][:KIND]`, one for each broker that the pattern matches."""
    patterns = []
    for text in texts:
        option = f"--fail {text}"
        # The name of a broker may hold an @ or a colon itself.
        known = [broker for broker in brokers if text == broker or text.startswith((f"{broker}@", f"{broker}:"))]
        name = re.escape(max(known, key=len)) if known else ".*?"
        match = re.fullmatch(rf"({name})(?:@([^@:]*))?(?::(.*))?", text)
        if match is None:
            raise UsageError(f"{option}: expected BROKER[@FROM-TO][:KIND]")
        start, end = (model.START, None) if match[2] is None else _window(match[2], option)
        reaction = _reaction("refused" if match[3] is None else match[3], option)
        patterns.append(Failure(match[1], reaction, start, end, _notices(notices, reaction)))
    must_differ(texts, [(each.broker_name, each.start, each.end) for each in patterns], "--fail")
    return tuple(
        replace(pattern, broker_name=broker)
        for text, pattern in zip(texts, patterns, strict=True)
        for broker in _matching(pattern.broker_name, brokers, topic, f"--fail {text}")
    )


def _matching(name: str, brokers: Sequence[str], topic: str, option: str) -> list[str]:
    matching = [broker for broker in brokers if broker == name or fnmatchcase(broker, name)]
    if not matching:
        hint = suggestion("brokers", name, brokers)
        raise DataError(f"{option}: topic {topic} has no broker {name}", hint=hint, code="unknown-broker")
    return matching


def _window(text: str, option: str) -> tuple[Moment, Moment | None]:
    match = re.fullmatch(r"(#?[\w.]*)-(#?[\w.]*)", text)
    if match is None:
        hint = "write @45s-1m30s, @45s- for an open end, or @#100-#200"
        raise UsageError(f"{option}: {text} is not a time window", hint=hint)
    start = _moment(match[1], option) if match[1] else model.START
    end = _moment(match[2], option) if match[2] else None
    for before, after in () if end is None else ((start.message, end.message), (start.us, end.us)):
        if before is not None and after is not None and after <= before:
            raise UsageError(f"{option}: the window ends before it starts", hint="write @FROM-TO with FROM before TO")
    return start, end


def _moment(text: str, option: str) -> Moment:
    if text.startswith("#"):
        return Moment(message=count(text[1:], f"{option}: message"))
    return Moment(us=duration_us(text, f"{option}:", zero=True))


def _reaction(kind: str, option: str) -> Reaction:
    name, equals, value = kind.partition("=")
    lower = name.lower().replace("readonly", "read-only")
    if lower == "slow" and not equals:
        raise UsageError(f"{option}: how slow?", hint="write :slow=800ms")
    if lower in ("refused", "slow"):
        return Reaction(lower, lower, 0, duration_us(value, f"{option}:") if equals else model.REFUSED_US)  # type: ignore[arg-type]
    if equals:
        raise UsageError(f"{option}: {name} takes no value", hint="only refused=TIME and slow=TIME do")
    if lower in ("timeout", "read-only"):
        return Reaction(lower, lower)  # type: ignore[arg-type]
    code = response_code(name, option)
    if code is None:
        kinds = ["refused", "timeout", "slow=TIME", "read-only"]
        others = f"kinds are {', '.join([*kinds, *model.STATUSES])}, or a response code such as SYSTEM_ERROR or 14"
        raise UsageError(
            f"{option}: there is no failure {name}", hint=close_names(name, [*kinds, *_FAILURES]) or others
        )
    return Reaction("status" if code[0] in model.STATUSES else "code", *code)


def response_code(text: str, option: str) -> tuple[str, int] | None:
    """Name and number of a broker's response code, given by either; None if unknown (raises UsageError)."""
    name = text.upper()
    if text.isdecimal() and len(text) < 9:
        number = int(text)
        name = next((code.name for code in ResponseCode if code.value == number), text)
    elif name in ResponseCode.__members__:
        number = ResponseCode[name].value
    else:
        return None
    if number == ResponseCode.SUCCESS:
        raise UsageError(f"{option}: SUCCESS is not a failure")
    return name, number


def _notices(text: str | None, reaction: Reaction) -> int | None:
    """A dead process closes its connection; a silent host is dropped when its registration is two minutes old."""
    if reaction.kind not in ("refused", "timeout"):
        return None
    if text is None:
        return 0 if reaction.kind == "refused" else model.HOST_LOSS_US
    if text.lower() == "never":
        return None
    return duration_us(text, "--set nameserver-notices=", zero=True)


def round_trips(
    texts: Sequence[str], brokers: Sequence[str], topic: str, max_bytes: int
) -> tuple[Mapping[str, Latency], Latency | None]:
    """`--round-trip [BROKER=]SPEC`: of single brokers, and of all others."""
    found: dict[str | None, Latency] = {}
    typed, about = list[str](), list[str | None]()
    for text in texts:
        option = f"--round-trip {text}"
        name, equals, spec = text.rpartition("=")
        own = _latency(spec, option, max_bytes)
        about += [name] if equals else own
        typed += [text] * (len(about) - len(typed))
        matching = _matching(name, brokers, topic, option) if equals else own
        for broker in matching:
            if broker is not None and broker not in brokers:
                hint = suggestion("brokers", broker, brokers)
                raise DataError(f"{option}: topic {topic} has no broker {broker}", hint=hint)
            if broker not in own and None not in own:
                raise DataError(f"{option}: the file has no row of {broker}")
        found |= {broker: own[broker if broker in own else None] for broker in matching}
    must_differ(typed, about, "--round-trip")
    return {broker: latency for broker, latency in found.items() if broker is not None}, found.get(None)


def _latency(spec: str, option: str, max_bytes: int) -> dict[str | None, Latency]:
    match = re.fullmatch(r"lognormal\(\s*([^,]+?)\s*,\s*(\d{1,2}(?:\.\d{1,6})?)\s*\)", spec, re.IGNORECASE)
    if match:
        return {None: lognormal(duration_us(match[1], option), float(match[2]), spec)}
    if spec.startswith("@") or spec.lower().endswith(".csv"):
        samples = _read_latencies(spec.removeprefix("@"), "--round-trip", max_bytes)
        return {name: Latency(spec, tuple(values)) for name, values in samples.items()}
    if not re.match(r"\d", spec):
        raise UsageError(f"{option}: not a latency", hint="write 3ms, lognormal(5ms,2) (median and sigma), or FILE.csv")
    return {None: Latency(spec, (duration_us(spec, "--round-trip"),))}


def _read_latencies(path: str, option: str, max_bytes: int) -> dict[str | None, list[int]]:
    """Broker name (None without such a column) → microseconds, from a CSV of milliseconds (raises DataError).

    A first row without numbers names the columns (`brokerName`, `latencyMs`). Empty lines count for nothing.
    """
    where = f"{option} {path}"
    samples: dict[str | None, list[int]] = {}
    bad: list[str] = []
    broker, latency = None, 0
    reader = csv.reader(io.StringIO(read_text(path, option, max_bytes), newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise DataError(f"{where}: row {reader.line_num}: {error}") from None
    if rows:
        names = [cell.strip().lower() for cell in rows[0][1]]
        broker, latency = 0 if len(names) > 1 else None, len(names) - 1
        named = next((place for place, name in enumerate(names) if name in _LATENCY_COLUMNS), None)
        if named is None and len(names) > 2 and _latency_us(names[-1]) is None:
            raise DataError(f"{where}: there is no column latencyMs", hint="the columns are " + ", ".join(names[:8]))
        if named is not None and _latency_us(names[-1]) is None:
            broker, latency = next((place for place, name in enumerate(names) if name in _BROKER_COLUMNS), None), named
            del rows[0]
    for number, row in rows:
        value = _latency_us(row[latency]) if len(row) > max(latency, broker or 0) else None
        name = None if value is None or broker is None else row[broker].strip()
        if value is None or name == "":
            bad.append(f"{number} ({','.join(row)[:40]})")
        else:
            samples.setdefault(name, []).append(value)
    if bad:
        more = f" and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        hint = "each row is a number of milliseconds above 0, or a broker's name and that number"
        raise DataError(f"{where}: no latency in row {', '.join(bad[:_SHOWN])}{more}", hint=hint)
    if not samples:
        raise DataError(f"{where}: the file has no latency")
    return samples


def _latency_us(text: str) -> int | None:
    try:
        value = float(text.strip().lower().removesuffix("ms"))
    except ValueError:
        return None
    return max(round(value * 1000), 1) if 0 < value <= _LONGEST_MS else None


def queue_of(text: str, queues: Sequence[MessageQueue], option: str) -> int:
    """`BROKER:QUEUE` as a position in the producer's list."""
    names = [f"{queue.broker_name}:{queue.queue_id}" for queue in queues]
    broker, colon, number = text.rpartition(":")
    if not colon or not re.fullmatch(r"\d{1,9}", number):
        raise UsageError(f"{typed(option, text)}: expected BROKER:QUEUE, as in {names[0]}")
    wanted = f"{broker}:{int(number)}"
    if wanted not in names:
        hint = suggestion("queues", wanted, names)
        raise UsageError(f"{typed(option, text)}: not in the producer's list of {len(names)} queues", hint=hint)
    return names.index(wanted)


def selector_of(
    text: str | None, keys_file: str | None, key_type: str, queues: Sequence[MessageQueue], max_bytes: int
) -> tuple[Selector | None, KeySpread | None]:
    """`--selector` with `--keys` and `--key-type`: the selector, and the queues of its keys."""
    key_type = one_of(key_type, "--set key-type=", _KEY_TYPES)
    if text is not None and is_file(text):
        function = from_file(text, "--selector", SELECTOR)
        keys = [] if keys_file is None else _keys(keys_file, key_type, max_bytes)
        spread = None if keys_file is None else _spread(keys, queues, lambda key: _quiet(function, queues, key))
        passed = tuple(key for _, key in keys)
        return Selector("function", function=function, keys=passed, text=function.title), spread
    if keys_file is not None and text != "hash":
        raise UsageError("--keys needs --selector hash or FILE.py:NAME")
    if text is None:
        return None, None
    if text == "hash":
        if keys_file is None:
            raise UsageError(
                "--selector hash needs keys", hint="pass a file with one key per line: --keys FILE, or - for stdin"
            )
        keys = _keys(keys_file, key_type, max_bytes)
        hashes = {key: hash_code(key) if key_type != "long" else long_hash_code(int(key)) for _, key in keys}
        spread = _spread(keys, queues, lambda key: queues[abs(hashes[key]) % len(queues)])
        return Selector("hash", tuple(hashes[key] for _, key in keys)), spread
    if text in ("random", "machine-room"):
        return Selector(text), None  # type: ignore[arg-type]
    if ":" not in text:
        hint = suggestion("selectors", text, ("hash", "random", "machine-room"))
        raise UsageError(f"--selector {text}: neither a selector nor BROKER:QUEUE", hint=hint)
    if not queues:
        return Selector("machine-room"), None
    return Selector("queue", queue=queues[queue_of(text, queues, "--selector")]), None


def _keys(path: str, key_type: str, max_bytes: int) -> list[tuple[str, str | int]]:
    """The lines of `--keys`, each with the key that the application passes to its selector."""
    texts = lines_of(read_text(path, "--keys", max_bytes))
    if not texts:
        raise DataError(f"--keys {path}: the file has no key")
    typed: dict[str, str | int] = {}
    for number, text in enumerate(texts, start=1):
        if text not in typed:
            typed[text] = _typed(text, key_type, f"--keys {path}: line {number}")
    return [(text, typed[text]) for text in texts]


def _typed(text: str, key_type: str, where: str) -> str | int:
    if key_type == "string":
        return text
    bits = 31 if key_type == "int" else 63
    if not re.fullmatch(r"\s*[+-]?\d{1,28}\s*", text) or not -(2**bits) <= int(text) < 2**bits:
        raise DataError(f"{where}: {text[:40]!r} is not a Java {key_type}")
    return int(text)


def _spread(
    keys: Sequence[tuple[str, str | int]],
    queues: Sequence[MessageQueue],
    select: Callable[[str | int], MessageQueue | None],
) -> KeySpread:
    counts = Counter(keys)
    hottest = []
    for (text, key), number in counts.most_common(_HOT_KEYS) if queues else ():
        queue = select(key)
        place = (None, None) if queue is None else (queue.broker_name, queue.queue_id)
        hottest.append(HotKey(text, number, *place))
    return KeySpread(len(counts), len(keys), tuple(hottest))


def _quiet(function: model.SelectorFunction, queues: Sequence[MessageQueue], key: str | int) -> MessageQueue | None:
    """The queue; None where the simulation is about to report an error."""
    try:
        queue = quietly(function, list(queues), key)
    except (Exception, SystemExit):  # noqa: BLE001 - the user's code
        return None
    return queue if isinstance(queue, MessageQueue) else None
