"""Who gives a secret key and a token: the environment, the context, or nobody."""

from __future__ import annotations

import pytest

from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.secret_prompts import secret_key, security_token
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ActiveContext, Place, Written

SECRET = Written("env:MQ", Place("config.yaml", 4, "contexts.a.secret"))


def options(secret: Written | None = None, *, by_project: bool = False) -> SourceOptions:
    return SourceOptions(active_context=ActiveContext("a", "rocketmq://h", secret, by_project))


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
    assert security_token(SourceOptions()) is None


def test_a_context_that_a_project_chose_gets_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MQ": "of the context", "RMQLB_SECRET_KEY": "x", "RMQLB_SECURITY_TOKEN": "token"}.items():
        monkeypatch.setenv(name, value)
    assert secret_key(options(SECRET, by_project=True)) == "of the context"
    with pytest.raises(UsageError, match="no secret key"):
        secret_key(options(by_project=True))
    assert security_token(options(by_project=True)) is None
    assert security_token(options()) == security_token(SourceOptions()) == "token"
