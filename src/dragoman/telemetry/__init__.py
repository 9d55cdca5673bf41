"""Telemetry: metrics and logs. Labels are bounded; no secret and no message text goes into either."""
