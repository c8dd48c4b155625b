"""Runs a command and writes its peak memory, in KB, to a file; a test run's own peak is too large to start from."""

import resource
import subprocess
import sys

if __name__ == "__main__":
    code = subprocess.run(sys.argv[2:], check=False).returncode
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
    sys.exit(code)
