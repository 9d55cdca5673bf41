"""Where things are in the checkout."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCE = CHECKOUT / "src"
EXAMPLE_TEXTS = CHECKOUT / "examples" / "texts"
CLIENT_SPECS = CHECKOUT / "tests" / "interop" / "clients"
CLIENT_CACHE = CHECKOUT / ".cache" / "interop"

STORE_VARIABLE = "DRAGOMAN_TEST_STORE"
"""The environment variable that says what `--store` says, for whatever a test run starts."""

ENGINE_VARIABLE = "DRAGOMAN_TEST_ENGINE"
"""The same of `--engine`."""
