"""Whether somebody listens where a master or a warehouse's URI says, asked before Java starts.

Spark and Hadoop would find out by themselves, after minutes of trying in silence.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from rmqlb.errors import EndpointError, UsageError

_SECONDS = 5.0
_ENDPOINT = "spark.hadoop.fs.s3a.endpoint"
_HTTPS = 443


def master_must_answer(master: str) -> None:
    """One address of a spark:// master listens.

    Raises:
        EndpointError: none does.
        UsageError: one is not HOST:PORT.
    """
    faults: list[str] = []
    for address in master.removeprefix("spark://").split(",") if master.startswith("spark://") else ():
        host, _, port = address.rpartition(":")
        try:
            fault = _fault(host.strip("[]"), int(port))
        except ValueError:
            raise UsageError(f"--master {master}: not HOST:PORT: {address}", hint="such as spark://host:7077") from None
        if fault is None:
            return
        faults.append(fault)
    if faults:
        hint = "is it running, and does its page show this very spark:// address?"
        text = f"{master}: cannot reach the Spark master: {'; '.join(faults)}"
        raise EndpointError(text, hint=hint, code="unreachable")


def storage_must_answer(uri: str, conf: Mapping[str, str]) -> None:
    """The server that a URI names listens, or the one that `conf` names for it.

    Nothing is asked where Hadoop's own files say which it is, or where a proxy is between.

    Raises:
        EndpointError: it does not.
        UsageError: the URI has a port that is none.
    """
    if any("proxy" in f"{key}={value}".lower() for key, value in conf.items()):
        return
    try:
        address = _address(uri, conf)
    except ValueError:
        raise UsageError(f"--warehouse {uri}: not HOST:PORT", hint="such as hdfs://namenode:8020/rmqlb") from None
    fault = None if address is None else _fault(*address)
    if address is not None and fault is not None:
        host, port = address
        text = f"{host}:{port}: cannot reach the storage of {uri}: {fault}"
        raise EndpointError(text, hint="is it running, and are its name and port right?", code="unreachable")


def _address(uri: str, conf: Mapping[str, str]) -> tuple[str, int] | None:
    """Host and port of the server, where they are known; a name without a port may be one of Hadoop's own."""
    parts = urlsplit(uri)
    if parts.scheme in ("abfss", "s3a"):
        named = parts.netloc if parts.scheme == "abfss" else conf.get(_ENDPOINT, "")
        parts = urlsplit(named if "://" in named else f"//{named}")
    elif parts.scheme not in ("hdfs", "webhdfs"):
        return None
    port = parts.port or {"http": 80, "https": _HTTPS, "": _HTTPS}.get(parts.scheme)
    return (parts.hostname, port) if parts.hostname and port else None


def _fault(host: str, port: int) -> str | None:
    """Why nobody answers there; None when somebody does."""
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except (OSError, OverflowError) as error:
        return f"{getattr(error, 'strerror', None) or error}"
    return None
