from __future__ import annotations

import pytest

from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.reading import access
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ActiveContext, Written
from rmqlb.sources.opening import Access

CONTEXT = ActiveContext("a", "rocketmq://h", Written("env:MQ", "config.yaml, line 4, contexts.a.secret", 4))


def opened(context: ActiveContext | None) -> Access:
    return access(SourceOptions(active_context=context), Terminal("show-route", OutputOptions()))


def secret_key(context: ActiveContext | None) -> str:
    found = opened(context).secret_key
    assert found is not None
    return found()


def test_the_environment_goes_before_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ", "of the context")
    assert secret_key(CONTEXT) == "of the context"
    monkeypatch.setenv("RMQLB_SECRET_KEY", "of the environment")
    assert secret_key(CONTEXT) == secret_key(None) == "of the environment"


def test_a_variable_that_is_empty_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ", "of the context")
    for name in ("RMQLB_SECRET_KEY", "RMQLB_SECURITY_TOKEN"):
        monkeypatch.setenv(name, "")
    assert secret_key(CONTEXT) == "of the context"
    with pytest.raises(UsageError, match="no secret key"):
        secret_key(None)
    assert opened(None).security_token is None


def test_the_token_is_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMQLB_SECURITY_TOKEN", "token")
    assert opened(None).security_token == "token"
