"""Files and data: one agent tells what it was sent, one answers with a file.

Serve it with `dragoman serve examples/files.py`.
"""

import csv
import io

from dragoman import Agent, DataPart, RawPart, Run

parts = Agent(id="parts", description="Tells what it was sent.", input_modes=["*/*"])
table = Agent(
    id="table",
    description="Turns rows of JSON into a CSV file.",
    input_modes=["application/json"],
    output_modes=["text/csv"],
)


@parts.handler
async def describe(run: Run) -> str:
    """Answer with one line for each part."""
    lines = [f"{type(part).__name__}, {part.media_type}, {part.filename}" for part in run.parts]
    return "\n".join(lines)


@table.handler
async def to_csv(run: Run) -> RawPart | None:
    """Answer with a file; reject a message without data."""
    text = io.StringIO()
    for part in run.parts:
        if isinstance(part, DataPart):
            csv.writer(text).writerows(part.value)
    if not text.getvalue():
        await run.reject("Send a data part that holds an array of rows.")
        return None
    return RawPart(raw=text.getvalue().encode(), filename="table.csv", media_type="text/csv")
