"""One suite for each port, run on every implementation of it: `homes` lists the stores, `rooms` the engines."""
