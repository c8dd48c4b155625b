"""Who gives a secret key and a token: the environment, the context, or nobody."""

from __future__ import annotations

import pytest

from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.reading import secret_key, security_token
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ActiveContext, Written

SECRET = Written("env:MQ", "config.yaml, line 4, contexts.a.secret", 4)


def options(secret: Written | None = None) -> SourceOptions:
    return SourceOptions(active_context=ActiveContext("a", "rocketmq://h", secret))


def test_the_environment_goes_before_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ", "of the context")
    assert secret_key(options(SECRET)) == "of the context"
    monkeypatch.setenv("RMQLB_SECRET_KEY", "of the environment")
    assert secret_key(options(SECRET)) == secret_key(SourceOptions()) == "of the environment"


def test_a_variable_that_is_empty_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ", "of the context")
    for name in ("RMQLB_SECRET_KEY", "RMQLB_SECURITY_TOKEN"):
        monkeypatch.setenv(name, "")
    assert secret_key(options(SECRET)) == "of the context"
    with pytest.raises(UsageError, match="no secret key"):
        secret_key(SourceOptions())
    assert security_token() is None


def test_the_token_is_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMQLB_SECURITY_TOKEN", "token")
    assert security_token() == "token"
