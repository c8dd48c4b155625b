"""The words that rmqlb does not use, what it says instead, and the few places where one of them is right."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

NOT_WORDS: dict[str, str] = {
    r"members?": "consumer; a process, where client IDs are shared",
    r"readers?": "consumer",
    r"deal(s|t|ing)?( out)?": "a strategy predicts owners, assigns queues",
    r"dealt anew": "moves",
    r"anew": "again",
    r"owners? seen|seen owners?|unlike seen|seen otherwise": "observed owner; mismatch",
    r"drift(s|ed)?": "mismatch",
    r"unowned|nobody|without (a )?reader": "unassigned; no consumer",
    r"multiply[ -]?owned|owned multiply": "with duplicate owners",
    r"shared (client )?ids?": "duplicate client ID",
    r"skew|lopsided|most / mean|max ?/ ?mean": "imbalance",
    r"queues a consumer|queues a member": "queues per consumer",
    r"no even plan": "minimum moves",
    r"settle[sd]?|settling": "converges, convergence time",
    r"window without owner": "gap",
    r"delivered again": "redelivered",
    r"made[ -]up|make up": "placeholder, synthetic",
    r"producers see": "writable queues",
    r"consumers see": "readable queues",
    r"avoided|avoids": "isolated",
    r"dumps?(?! file)": "snapshot",
    r"put aside|set aside": "quarantined",
    r"heals?|healed|mend(s|ed|ing)?|befalls?|cures?|cured": "plain words",
    r"is none that|whole or not at all|of its own making|at the worst|in vain": "plain words",
    r"likewise|thereof|therein|whence|lest|albeit|amiss|whither|thereby|henceforth|betimes": "plain words",
    r"or else|[,;:(] else": "otherwise",
    r"fits? (nothing|no|none)|nothing fits": "matches nothing",
    r"not told|untold|(did|do|does) not tell|cannot be told|tells? nothing|nobody told": "reported, unknown",
    r"so long": "from then on",
    r"violat(e|es|ed|ion|ions)|holds? and|limits? holds?": "passed, failed",
    r"no even|evenest": "balanced",
    r"95 %|half of the trials": "p95, p50",
    r"member ids?": "client ID",
}
