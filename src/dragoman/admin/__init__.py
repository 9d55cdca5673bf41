"""Administration: who may call and what they are granted, for the commands and the admin surface alike."""

from dragoman.admin.operations import Administration
from dragoman.admin.overview import Overview

__all__ = ["Administration", "Overview"]
