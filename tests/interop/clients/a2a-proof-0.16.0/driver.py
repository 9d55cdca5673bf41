"""Runs a2a-proof on `contract.yaml` over one transport and prints its own JSON report, with its exit code.

driver.py AGENT_URL JSONRPC|HTTP+JSON
"""

import json
import os
import subprocess
import sys
from pathlib import Path

agent_url, transport = sys.argv[1:]
contract = Path(__file__).with_name("contract.yaml")
run = subprocess.run(
    ["a2a-proof", "run", str(contract), "--transport", transport, "--format", "json"],
    env={**os.environ, "AGENT_URL": agent_url},
    capture_output=True,
    text=True,
    check=False,
)
if not run.stdout.startswith("{"):
    sys.exit(f"a2a-proof gave no report (exit code {run.returncode}): {run.stdout}{run.stderr}")
print(json.dumps({"exit": run.returncode, "report": json.loads(run.stdout)}))
