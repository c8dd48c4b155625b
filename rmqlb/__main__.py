"""`python -m rmqlb`."""

from __future__ import annotations

from rmqlb.cli.main import run

if __name__ == "__main__":
    run()
