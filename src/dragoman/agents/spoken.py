"""A message as one text, for agents that take nothing else: a command's standard input, a model's prompt."""

from dragoman.model import DataPart, Part, RawPart, TextPart


class NotText(Exception):
    """A part has no form as text; the message says which and why, to its sender."""


def spoken(parts: tuple[Part, ...]) -> str:
    """Return parts as one text, joined by newlines: text as it is, data as its JSON, a file if it holds UTF-8 text.

    Raises:
        NotText: a part is another kind of file, or lies elsewhere.
    """
    return "\n".join(_text(part, f"message.parts[{index}]") for index, part in enumerate(parts))


def _text(part: Part, place: str) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, DataPart):
        return bytes(part.data).decode()
    if not isinstance(part, RawPart):
        raise NotText(f"{place}: this agent fetches nothing; send the file itself, as text.")
    try:
        text = part.raw.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise NotText(f"{place}: this agent takes text, data, and files that hold UTF-8 text.")
    return text
