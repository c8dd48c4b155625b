import os

from msgspec.structs import replace

from rmqlb.cli.click import get_current_context
from rmqlb.cli.command_tree import grouped
from rmqlb.cli.common.declare import command
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.settings import resolve_options
from rmqlb.model.configuration import Context, Setting
from rmqlb.model.result import info
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.sources.source_text import shown_source
from rmqlb.views.config_view import config_report

_SECRETS = {"password": "RMQLB_PASSWORD", "secret-key": "RMQLB_SECRET_KEY", "security-token": "RMQLB_SECURITY_TOKEN"}
_IS_SET = "(set)"


@command
def show_settings(source: SourceOptions, output: OutputOptions) -> None:
    """Show each setting that a command would use, with its origin; secrets stay hidden.

    For a secret, rmqlb shows only its location, or that it is set.

    Examples:
      rmqlb config show
      rmqlb config show --context prod --source-timeout 10s -o json

    Exit codes: 0 done, 2 usage, 4 there is no such context.
    """
    terminal = Terminal("config show", output)
    settled = resolve_options(get_current_context())
    found = dict(settled.settings)
    if (named := found["source"]).value is not None:  # perhaps with a password, which every other command refuses
        found["source"] = replace(named, value=shown_source(str(named.value)))
    settings = sorted(found.values(), key=lambda setting: setting.key != "context")
    settings += _secrets(source.active_context)
    report = config_report(settings, settled.config)
    active = source.active_context
    snapshot = ClusterSnapshot("configuration", settled.config.path or "", context=active.name if active else None)
    note = settled.ignored_context_note
    terminal.show(report, snapshot, () if note is None else (info(note),))


def _secrets(context: Context | None) -> list[Setting]:
    secret = None if context is None else context.values.get("secret")
    found = [] if secret is None else [Setting("secret", secret.value, "context", secret.origin)]
    return found + [
        Setting(key, _IS_SET, "environment", variable) for key, variable in _SECRETS.items() if os.environ.get(variable)
    ]


app = grouped("config", {"show": show_settings})


@app.callback()
def config() -> None:
    """Show the settings and their origins: flags, variables, contexts and the configuration file.

    rmqlb takes a setting from the first place that has it: flag, environment (RMQLB_…), context in use,
    $XDG_CONFIG_HOME/rmqlb/config.yaml (otherwise ~/.config/rmqlb/config.yaml), default.
    """
