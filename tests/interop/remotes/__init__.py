"""Agents on official SDK servers, each in a process of its own: what our side calls."""
