"""`expr:arg % n`: the arithmetic of a selector, computed as Java computes it.

Rules of this file:
- Nothing is run as Python: the text is parsed, and each node is one of those below.
- A value is an int of 32 bits or a long of 64, by Java's rules: an operation on two ints is done in 32 bits, on
  anything else in 64, and wraps round. `/` and `//` both divide towards zero, and `%` has the sign of its left side.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from rmqlb.engine.send.java_hash import hash_code, long_hash_code
from rmqlb.errors import UsageError
from rmqlb.model.message_queue import MessageQueue

Value = tuple[int, bool]
"""A number, and whether it is a long."""
_LONGEST = 200
_HINT = "write arithmetic of arg, n and numbers: arg % n, abs(hash(arg)) % n, (hash(arg) & 2147483647) % n"


class JavaError(Exception):
    """What Java throws; the text begins with its class."""


def expression_selector(text: str, key_type: str) -> Callable[[Sequence[MessageQueue], object], MessageQueue]:
    """A selector: the queue at the index that the expression gives for a key.

    It is of `arg` (the key: string, int or long), `n` (how many queues), whole numbers, + - * / // % & and brackets,
    `abs(x)` (`Math.abs`), `floorMod(x, y)` (`Math.floorMod`) and `hash(arg)` (`arg.hashCode()`); UsageError otherwise.

    >>> queues = [MessageQueue("T", "a", i) for i in range(4)]
    >>> select = expression_selector("arg % n", "long")
    >>> select(queues, 7).queue_id
    3
    >>> select(queues, -1)
    Traceback (most recent call last):
        ...
    rmqlb.engine.send.expressions.JavaError: IndexOutOfBoundsException: index -1 of 4 queues
    """
    tree = _parsed(text)
    _check(tree, text, is_text=key_type == "string")
    is_long = key_type == "long"

    def select(queues: Sequence[MessageQueue], key: object) -> MessageQueue:
        names: dict[str, Value] = {"n": (len(queues), False)}
        if isinstance(key, int):
            names["arg"] = (key, is_long)
            names["hash"] = (long_hash_code(key) if is_long else key, False)
        else:
            names["hash"] = (hash_code(str(key)), False)
        index = _wrapped(_value(tree, names)[0], 32)
        if not 0 <= index < len(queues):
            raise JavaError(f"IndexOutOfBoundsException: index {index} of {len(queues)} queues")
        return queues[index]

    return select


def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise UsageError(f"--selector expr:{text[:40]}…: longer than {_LONGEST} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"--selector expr:{text}: {reason}", hint=_HINT) from None


def _check(node: ast.expr, text: str, *, is_text: bool) -> None:
    """Only what `_value` knows, and no number made of a text."""
    if is_text and isinstance(node, ast.Name) and node.id == "arg":
        raise _wrong(text, "arg is a text", "write hash(arg), or --key-type int or long")
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool) and number < 2**63:
            inside: Sequence[ast.expr] = ()
        case ast.Name(id="n" | "arg") | ast.Call(func=ast.Name(id="hash"), args=[ast.Name(id="arg")], keywords=[]):
            inside = ()
        case ast.Call(func=ast.Name(id="abs"), args=[_], keywords=[]):
            inside = node.args
        case ast.Call(func=ast.Name(id="floorMod"), args=[_, _], keywords=[]):
            inside = node.args
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=value):
            inside = (value,)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            inside = (left, right)
        case _:
            raise _wrong(text, f"{ast.unparse(node)} is none of what Java's arithmetic has here")
    for each in inside:
        _check(each, text, is_text=is_text)


def _wrong(text: str, what: str, hint: str = _HINT) -> UsageError:
    return UsageError(f"--selector expr:{text}: {what}", hint=hint)


def _value(node: ast.expr, names: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=int() as number):
            return number, number >= 2**31
        case ast.Name(id=name):
            return names[name]
        case ast.Call(func=ast.Name(id="hash")):
            return names["hash"]
        case ast.Call(func=ast.Name(id="abs"), args=[value]):
            number, is_long = _value(value, names)
            return _wrapped(abs(number), 64 if is_long else 32), is_long
        case ast.Call(args=[left, right]):
            return _promoted(_floor_mod, _value(left, names), _value(right, names))
        case ast.UnaryOp(op=op, operand=value):
            number, is_long = _value(value, names)
            return _wrapped(-number if isinstance(op, ast.USub) else number, 64 if is_long else 32), is_long
        case ast.BinOp(left=left, op=op, right=right):
            return _promoted(_OPERATIONS[type(op)], _value(left, names), _value(right, names))
    raise AssertionError(ast.dump(node))


def _promoted(operation: Callable[[int, int], int], left: Value, right: Value) -> Value:
    """Binary numeric promotion: in 64 bits when either is a long."""
    is_long = left[1] or right[1]
    return _wrapped(operation(left[0], right[0]), 64 if is_long else 32), is_long


def _wrapped(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise JavaError("ArithmeticException: / by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _divided(left, right)


def _floor_mod(left: int, right: int) -> int:
    if right == 0:
        raise JavaError("ArithmeticException: / by zero")
    return left % right


_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: _divided,
    ast.FloorDiv: _divided,
    ast.Mod: _remainder,
    ast.BitAnd: lambda left, right: left & right,
}
