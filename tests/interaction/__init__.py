"""What the server promises its callers, over every binding, as requests and replies against a real process.

`requirements.py` lists each promise with its source; every test carries the ids of those that it proves.
"""
