"""`rmqlb/contexts`, `rmqlb/context` and `rmqlb/config`: where a secret is, never the secret."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.model.configuration import Layer


class ContextData(TypedDict):
    """A context; a key is null where the file does not have it.

    Attributes:
        name: its name.
        active: commands use it here when they are given no source.
        source: where the cluster is.
        user: who logs in to a Dashboard.
        accessKey: the account of a cluster with ACL.
        secret: where the password or the secret key is.
        caFile: PEM file of the CAs that are trusted.
        clientCert: PEM file of the certificate to show.
        clientKey: PEM file of its key.
        tlsName: the name that every server's certificate bears.
        mapAddress: addresses to reach at others, FROM=TO.
        timeout: longest wait for one answer, as written.
        retries: further tries of a read.
        line: where it begins in the file, from 1.
    """

    name: str
    active: bool
    source: str | None
    user: str | None
    accessKey: str | None
    secret: str | None
    caFile: str | None
    clientCert: str | None
    clientKey: str | None
    tlsName: str | None
    mapAddress: list[str] | None
    timeout: str | None
    retries: int | None
    line: int


class ContextsData(TypedDict):
    """All contexts.

    Attributes:
        path: the user's file, there or not.
        active: the context that commands use here; null is none.
        contexts: in the file's order.
    """

    path: str
    active: str | None
    contexts: list[ContextData]


class OneContextData(TypedDict):
    """One context.

    Attributes:
        path: the file that it is in.
        context: what it holds.
    """

    path: str
    context: ContextData


class SettingData(TypedDict):
    """A setting as a command would use it.

    Attributes:
        key: as in a file.
        value: null is nothing; of a secret only that it is set, or where it is.
        layer: what set it.
        origin: the option, the variable or the place in a file, in words; null for a default.
        path: the file that it is written in, if it is.
        line: and where in it, from 1.
    """

    key: str
    value: str | int | bool | list[str] | None
    layer: Layer
    origin: str | None
    path: str | None
    line: int | None


class ConfigData(TypedDict):
    """All settings.

    Attributes:
        userFile: the user's file; null when there is none.
        projectFile: the project's file; null when there is none.
        settings: one by one.
    """

    userFile: str | None
    projectFile: str | None
    settings: list[SettingData]
