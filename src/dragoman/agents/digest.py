"""The digest agent: an extractive summary of the texts, files and data that it is sent."""

import json
from collections.abc import Iterator

from dragoman.agents.agent import Agent
from dragoman.agents.run import BlockingRun
from dragoman.agents.summary import Document, digest_markdown, document_from_json, document_from_text
from dragoman.model import Artifact, DataPart, Part, RawPart, Skill, TextPart
from dragoman.model.ids import new_id

MARKDOWN = "text/markdown"
_JSON_TYPES = ("application/json", "text/json")

digest = Agent(
    id="digest",
    name="Digest",
    description="Summarises texts, text files and JSON: key sentences in their order, counts, top terms.",
    version="1.0.0",
    input_modes=["text/*", "application/json"],
    output_modes=[MARKDOWN],
    skills=[
        Skill(
            id="digest",
            name="Digest",
            description="Sends back a Markdown digest of everything in the message.",
            tags=("summary", "text"),
            examples=("Summarise this: …",),
            output_modes=(MARKDOWN,),
        )
    ],
)


@digest.handler
def summarise(run: BlockingRun) -> Artifact | None:
    """Digest the parts of the message; a part that cannot be read is named in a rejection."""
    try:
        documents = list(_documents(run.parts))
        markdown = digest_markdown(documents)
    except ValueError as error:
        run.reject(f"Nothing to summarise: {error}")
        return None
    return Artifact(
        artifact_id=new_id(),
        name="digest.md",
        description=f"A digest of {len(documents)} document{'s' if len(documents) != 1 else ''}.",
        parts=(TextPart(text=markdown, media_type=MARKDOWN),),
    )


def _documents(parts: tuple[Part, ...]) -> Iterator[Document]:
    for number, part in enumerate(parts, start=1):
        title = part.filename or f"part {number}"
        if isinstance(part, TextPart):
            yield document_from_text(title, part.text)
        elif isinstance(part, DataPart):
            yield document_from_json(title, part.value)
        elif isinstance(part, RawPart):
            yield _file(title, part)
        else:
            raise ValueError(f"{title} is a link, and this agent opens no links; send the file itself")


def _file(title: str, part: RawPart) -> Document:
    try:
        text = part.raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{title} is not UTF-8 text") from None
    if part.media_type.partition(";")[0].strip().lower() in _JSON_TYPES:
        try:
            return document_from_json(title, json.loads(text))
        except json.JSONDecodeError as error:
            raise ValueError(f"{title} is not JSON: {error.msg} in line {error.lineno}") from None
        except RecursionError:
            raise ValueError(f"{title} is nested too deeply") from None
    return document_from_text(title, text)
