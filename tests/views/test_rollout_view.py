import csv
import io

from rmqlb.model.plan_rollout import Rollout, RolloutChoice
from rmqlb.views.formats.machine import as_csv
from rmqlb.views.plan_rollout import rollout_report
from tests.support.group_builders import choice, trials

TRIED = trials(
    20,
    longest_gap_ms=(1000, 2000, 3000),
    total_gap_ms=(4000, 5000, 6000),
    longest_overlap_ms=(0, 1000, 1000),
    total_overlap_ms=(0, 1000, 2000),
    redelivered=(1, 2, 9),
)
BEST = choice(TRIED, "abc", best=True)


def rollout(*choices: RolloutChoice) -> Rollout:
    return Rollout("g", "AVG", "AVG", ("a", "b", "c"), choices, (), 0, misassigned_is_minimum=True)


def test_the_first_line_says_what_is_done_and_what_even_the_best_way_costs() -> None:
    shown = rollout_report(rollout(BEST, choice(TRIED, "cba", "reversed")))
    assert shown.facts == (
        "g, restart of 3 consumers: longest gap 3.0 s; longest overlap 1.0 s",
        (
            "  recommended: order sorted, one at a time, every 30s, each away 15s · "
            "converged after 1m30s, in 95 % of 20 trials"
        ),
        "  longest gap 2.0 s in 95 % of trials · at most 9 messages redelivered in any trial",
    )
    assert (shown.grave, shown.closing) == ("warning", ("2 ways tried, 20 trials each",))


def test_a_choice_that_does_not_converge_says_so() -> None:
    shown = rollout_report(rollout(choice(trials(20, 18), "abc", best=True, takes_ms=None)))
    assert shown.facts[0].startswith("g, restart of 3 consumers: does not always converge")
    assert shown.facts[1].endswith(" · 18 of 20 trials converged")
    assert shown.grave == "error"


def test_choices_have_their_figures_and_unknown_ones_are_empty() -> None:
    table = rollout_report(rollout(BEST, choice(trials(20, 3), takes_ms=None))).only(("choices",)).table
    first, second = csv.DictReader(io.StringIO(as_csv(table), newline=""))
    assert first == {
        "orderName": "sorted", "atOnce": "1", "pauseMs": "30000", "downMs": "15000", "takesMs": "90000",
        "longestGapP95Ms": "2000", "longestGapMaxMs": "3000", "totalGapP95Ms": "5000", "longestOverlapP95Ms": "1000",
        "longestOverlapMaxMs": "1000", "totalOverlapP95Ms": "1000", "redeliveredMax": "9", "converged": "20", "trials": "20",
        "best": "best",
    }  # fmt: skip
    assert (second["takesMs"], second["redeliveredMax"], second["converged"]) == ("", "", "3")
