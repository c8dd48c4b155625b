from __future__ import annotations

import json
from pathlib import Path

from .run import EXAMPLE, run

CODE = """\
print("loaded")
throws = lambda group, client_id, queues, client_ids: queues[len(queues)]

def circle(group, client_id, queues, client_ids):
    print("asked", group)
    return queues[client_ids.index(client_id) :: len(client_ids)]
"""


def test_stdout_has_the_result_alone_and_debug_shows_where_a_function_fails(tmp_path: Path) -> None:
    file = tmp_path / "my-rules.py"
    file.write_text(CODE, encoding="utf-8")
    owners = ("show-owners", "-s", EXAMPLE, "-g", "bill-svc", "--strategy")
    ran = run(*owners, f"{file}:circle", "--strategy", "AVG_BY_CIRCLE", "-o", "json")
    assert ran.stderr.startswith("loaded\nasked bill-svc\n")
    ours, javas = json.loads(ran.stdout)["data"]["strategies"]
    assert (ours.pop("strategy"), javas.pop("strategy"), ours) == ("circle (my-rules.py)", "AVG_BY_CIRCLE", javas)
    assert "Traceback" not in run(*owners, f"{file}:throws").stderr
    assert f'File "{file}", line 2, in <lambda>' in run(*owners, f"{file}:throws", "--debug").stderr
