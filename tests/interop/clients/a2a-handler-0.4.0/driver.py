"""Uses the command line of a2a-handler on an agent as a person would, and prints what each command answered.

driver.py AGENT_URL
"""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

agent_url = sys.argv[1]


def handler(home: str, *words: str, output: str = "json") -> dict[str, Any]:
    """Exit code and JSON answer of one command (its error, which it writes on stderr, if it has no answer)."""
    run = subprocess.run(
        ["handler", "--output", output, *words, "--url", agent_url],
        env={
            **os.environ,
            "HOME": home,
            "XDG_CONFIG_HOME": home,
            "XDG_DATA_HOME": home,
            "XDG_STATE_HOME": home,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if output == "ndjson":
        return {"exit": run.returncode, "lines": [json.loads(line) for line in run.stdout.splitlines()]}
    if run.stdout.strip():
        return {"exit": run.returncode, "answer": json.loads(run.stdout)}
    start, end = run.stderr.find("{"), run.stderr.rfind("}") + 1
    return {"exit": run.returncode, "error": json.loads(run.stderr[start:end]) if end else run.stderr}


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        report = {
            "card": handler(home, "card", "get"),
            "validate": handler(home, "card", "validate"),
            "send": handler(home, "message", "send", "--text", "spoken words"),
            "stream": handler(home, "message", "stream", "--text", "stream 3", output="ndjson"),
            "started": handler(home, "message", "send", "--no-wait", "--text", "slow 30"),
        }
        done = report["send"]["answer"]["id"]
        running = report["started"]["answer"]["id"]
        report["get"] = handler(home, "task", "get", done)
        report["cancel"] = handler(home, "task", "cancel", running)
        report["cancel again"] = handler(home, "task", "cancel", running)
        report["unknown"] = handler(home, "task", "get", "0198f0a0-0000-7000-8000-000000000000")
        report["list"] = handler(home, "task", "list")
    print(json.dumps(report))


main()
