"""The engine of the demo agent ``digest``: an extractive summary of texts and JSON values, as Markdown.

Pure: the same documents always give the same digest, in time linear in their length (but for one sort of sentences).
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_SENTENCES = 50  # the most key sentences that a digest may be asked for
MAX_QUOTE = 600  # characters; a longer "sentence" (minified code, a record) is quoted by its beginning
_TERMS, _POOL = 10, 200  # terms listed; best sentences that are compared with each other for redundancy
_PACE, _HAN_PACE = 230, 450  # words, and Han or kana characters, read in a minute

# Words that say little by themselves, in English and, where they mean nothing in English, in other languages.
_COMMON = frozenset(
    """a about above after again against all almost already also although always am among an and another any are as at
    away back be became because been before being below between both but by came can cannot could did do does done down
    during each either else enough even ever every few first for from further get give given go got had has have having
    he her here him himself his how however i if in instead into is it its itself just last later least less like ll
    made make many may me might more most much must my need needed neither never new no none nor not nothing now of off
    often on once one only onto or other others our out over own per put quite rather re said same see several she since
    so some something still such take than that the their them themselves then there therefore these they thing things
    this those though through thus to together too took towards two under until up upon us use used using ve very was
    way we well went were what when where whether which while who whole whom whose why will with within without would
    yet you your aber als auch auf aus bei das dass dem den der des die diese durch ein eine einem einen einer er es für
    ich ihr im ist mehr mit nach nicht noch oder sein seine sich sie sind um und von vor wenn werden wie wird wurde zu
    zum zur über au aux avec ce cette dans du elle en et il la le les leur mais ne ou par pas que qui se ses sont sur un
    une été être al como con de del el esta este lo los las más para pero por sus che da della di gli nel non""".split()
)
# Openings that lean on the sentence before: quoted alone, such a sentence reads badly.
_LEANING = frozenset("this that these those it he she they its but however so thus yet and or also".split())
# Abbreviations that something always follows, those that a number follows, and those that may end a sentence.
_TITLES = frozenset("dr mr mrs ms prof gen col capt lt sgt rev hon sen rep mt e.g i.e cf vs d.h u.a".split())
_NUMBERED = frozenset("no nr fig p pp vol ch c ca jan feb mar apr jun jul aug sep sept oct nov dec".split())
_SHORTENED = frozenset("etc al inc ltd co corp jr sr bros dept univ est st ave".split())
# Han and hiragana, where a character counts as a word; and marks without which Indic, Thai and other words fall apart.
_HAN = "\u3005-\u3007\u3040-\u309f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARK = "[\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u109f]"
_PART = rf"[^\W_{_HAN}]+(?:{_MARK}+[^\W_{_HAN}]*)*"
_WORD = re.compile(rf"[{_HAN}]|{_PART}(?:(?:['’.\u200c\u200d-]|(?<=\d),(?=\d)){_PART})*")
_HAN_PAIR = re.compile(f"(?=((?:(?![\u3040-\u309f的了是在和有不这我他也就都而与或之为以])[{_HAN}]){{2}}))")
_PLURAL = re.compile(r"(?:(?<=[sc]h)|(?<=ss)|(?<=x))es$|(?<=[a-z]{2}[^sui])s$")
# Each pattern below matches or fails in one pass from wherever it starts: no text can make it go back and forth.
_END = re.compile(r"""(?:[.!?…‽]+|([。！？।॥؟۔։።။]+))([]"'“”‘’«»)}*_`~」』）]*)(?: »)?(?:\[\d+\])*""")
_NEXT = re.compile(r"""\s+[\["'“‘„«({*_`~¿¡「『《【（]*(\w*)(.?)""")
_LAST_WORD = re.compile(r"""[^\s"“‘„«({*_`~[]+$""")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}|[^\W\d_]")
_STOPPED = re.compile(r"""[.!?…:。！？।]["'”’»)\]*_`\s]*$""")
_HEADING, _LONE_LINE = re.compile(r"#{1,6} (.*)"), re.compile(r"(?![a-z]).{0,90}[^\W_][*_]*")
_ITEM = re.compile(r"(?:[-*+•‣]|(\d{1,3})[.)]) (.*)")
_FENCE, _RULE = re.compile(r"\s*(?:> ?)?(?:```|~~~)[^`]*$"), re.compile(r"[-=*_~#\s]*")
_UNPRINTED = re.compile("[\x00-\x08\x0e-\x1b\x7f\ufeff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A plain or Markdown text and its title; made of a JSON value, also how many members it has on how many levels."""

    title: str
    text: str
    members: int = 0
    depth: int = 0


class _Sentence(NamedTuple):
    text: str
    words: tuple[str, ...]
    document: int
    worth: float  # of its place and form, whatever it says; 0 for a heading or a table's row, never quoted


def document_from_text(title: str, text: str) -> Document:
    """Return a text as a document; raise ValueError, with a sentence for its sender, if it holds no words."""
    if not _WORD.search(text):
        raise ValueError(f"“{_fold(title)[:120]}” holds no words.")
    return Document(title, text)


def document_from_json(title: str, value: object) -> Document:
    """Return a JSON value, as `json.loads` gives it, as a document of prose.

    A string of prose becomes a paragraph of its own, unchanged, under a heading made of its keys; the other members of
    an object or array make a list item ("users — name: Ada; role: admin."), many numbers only their range. Raises
    ValueError, with a sentence for its sender, if nothing but nulls is left.
    """
    lines, members, depth = list[str](), 0, 0
    todo: list[tuple[str, Any, int]] = [("", [value], 0)]  # a stack of our own, which no nesting overflows
    while todo:
        label, node, level = todo.pop()
        pairs = list(node.items()) if isinstance(node, dict) else [("", member) for member in node]
        members, depth = members + (len(pairs) if level else 0), max(depth, level)
        facts, prose, inner = [], [], []
        for key, child in pairs:
            name = _fold(str(key))
            path = f"{label} {name}".strip()[-80:]  # cut, because all that lies below repeats it
            if isinstance(child, dict | list):
                inner.append((path, child, level + 1))
            elif isinstance(child, str) and len(child) > (25 if _STOPPED.search(child) else 100):
                prose += [child] if isinstance(node, list) else [f"# {path}", child]
            elif child is not None:
                told = str(child).lower() if isinstance(child, bool) else _fold(str(child))
                facts += [f"{name}: {told}" if name else told] if told else []
        if isinstance(node, list) and len(node) > 8 and all(type(member) in (int, float) for member in node):
            facts = [f"{len(node)} numbers from {min(node)} to {max(node)}"]
        if facts:
            lines.append(f"- {label}{' — ' if label else ''}{'; '.join(facts).rstrip('.')}.")
        lines += [f"# {label}"] if label and prose and isinstance(node, list) else []
        lines += prose
        todo += reversed(inner)
    return Document(title, document_from_text(title, "\n\n".join(lines)).text, members, depth)


def digest_markdown(documents: Sequence[Document], *, sentences: int = 5) -> str:
    """Return a digest of the documents in Markdown: a heading, counts, key sentences and top terms.

    At most ``sentences`` (1 to `MAX_SENTENCES`) are quoted, in their order and as they stand, but for white space and a
    cut after `MAX_QUOTE` characters (" […]"); each document is quoted if ``sentences`` suffice. List items count as
    paragraphs, of headings and tables only words count, of fenced code nothing (unless there is nothing else). Raises
    ValueError, with a sentence for the sender, for no words or ``sentences`` out of range.
    """
    if not 1 <= sentences <= MAX_SENTENCES:
        raise ValueError(f"A digest has from 1 to {MAX_SENTENCES} key sentences, not {sentences}.")
    readings = [_read(number, document) for number, document in enumerate(documents)]
    found = [sentence for _, read in readings for sentence in read]
    if not found:
        raise ValueError("No words were sent.")
    terms, top_terms = _terms(found)
    titles = [re.sub(r"([\\`*\[\]<>_|])", r"\\\1", _fold(d.title)[:120]) or "untitled" for d in documents]
    counted, several = _count(len(documents), "document"), len(documents) > 1
    counts = [counted, _count(sum(number for number, _ in readings), "paragraph"), *_counts(found)]
    if depth := max(document.depth for document in documents):
        counts += [_count(sum(d.members for d in documents), "JSON member"), f"{_count(depth, 'level')} deep"]
    head = f"# Digest of {counted if several else titles[0]}"
    out = [head, "", f"**{', '.join(counts)}.**", "", "## Key sentences"]
    last = -1
    for number, sentence in enumerate(_choose(found, terms, sentences), 1):
        if sentence.document != last:
            out += ["", f"**{titles[sentence.document]}**", ""] if several else [""]
        last, text = sentence.document, sentence.text
        if len(text) > MAX_QUOTE:
            text = (text[:MAX_QUOTE].rpartition(" ")[0] or text[:MAX_QUOTE]) + " […]"
        out.append(f"{number}. {text}")
    return "\n".join([*out, "", "## Top terms", "", top_terms or "Only common words.", ""])


def _fold(text: str) -> str:
    return " ".join(_UNPRINTED.sub(" ", text).split())


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _counts(found: list[_Sentence]) -> list[str]:
    words = [word for sentence in found for word in sentence.words]
    han = sum(len(word) == 1 and word > "\u3000" for word in words)
    minutes = round((len(words) - han) / _PACE + han / _HAN_PACE)
    distinct = f"{_count(len(words), 'word')} ({len({word.lower() for word in words}):,} distinct)"
    reading = f"about {_count(minutes, 'minute')} to read" if minutes else "under a minute to read"
    return [_count(sum(sentence.worth > 0 for sentence in found), "sentence"), distinct, reading]


def _read(number: int, document: Document) -> tuple[int, list[_Sentence]]:
    """Return the number of paragraphs and the sentences, among them headings, whose worth is 0."""
    blocks = list(_blocks(document.text, code=False)) or list(_blocks(document.text, code=True))
    kinds = Counter(kind for kind, _ in blocks)
    told = kinds["prose"] + kinds["item"]  # more lone lines than that are no headings but verses or notes
    quoted = {"prose": 1.0, "item": 0.5}
    quoted |= {"line": 1.0} if kinds["line"] > told else {} if told else {"heading": 1.0}
    found: list[_Sentence] = []
    first, later = 1.3, 1.15  # what opens the text says most, and then what opens a paragraph
    for kind, lines in blocks:
        for n, text in enumerate(_sentences(lines)):
            words = tuple(_WORD.findall(text))
            worth = quoted.get(kind, 0.0) * _worth(text, words) * (later if n else first)
            found.append(_Sentence(text, words, number, worth))
        first, later = (1.1, 1.0) if kind in quoted else (first, later)
    return sum(kinds[kind] for kind in quoted), found


def _blocks(text: str, *, code: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield headings (and rows of tables), list items, paragraphs of prose, and lone lines that may be headings."""
    lines = [*text.splitlines(), ""]
    fences = [] if code else [n for n, line in enumerate(lines) if _FENCE.match(line)]
    for start, end in zip(fences[::2], fences[1::2], strict=False):
        lines[start : end + 1] = [""] * (end + 1 - start)
    kind, held = "prose", list[str]()
    for line in (line.lstrip("> ") if line.startswith(">") else line for line in map(_fold, lines)):
        heading, item = _HEADING.fullmatch(line), _ITEM.fullmatch(line)
        blank = _RULE.fullmatch(line) or _FENCE.match(line)
        if item and held and kind == "prose" and item[1] not in (None, "1"):
            item = None  # a number that happens to begin a line of prose
        if blank or heading or item or line[0] == "|" or kind == "heading":
            if any(map(_WORD.search, held)):
                lone = kind == "prose" and len(held) == 1 and _LONE_LINE.fullmatch(held[0])
                yield ("line" if lone else kind), held
            kind = "heading" if heading or line[:1] == "|" else "item" if item else "prose"
            held = [] if blank else [heading[1] if heading else item[2] if item else line]
        else:
            held.append(line)


def _sentences(lines: list[str]) -> Iterator[str]:
    """Split a block's lines into sentences, each of which holds a word."""
    # Lines that neither run on nor end in a stop are records, verses or notes, each a sentence of its own.
    runs_on = 2 * sum(line[0].islower() for line in lines[1:]) >= len(lines) - 1
    for text in [" ".join(lines)] if runs_on or _STOPPED.search(lines[-1]) else lines:
        start, first, caseless = 0, _WORD.search(text), text.islower()
        for mark in _END.finditer(text):
            if first and mark.start() > first.start() and _ends(text, start, mark, caseless):
                yield text[start : mark.end()].strip()
                start, first = mark.end(), _WORD.search(text, mark.end())
        if first:
            yield text[start:].strip()


def _ends(text: str, start: int, mark: re.Match[str], caseless: bool) -> bool:
    """Tell whether a stop ends the sentence that began at ``start``, or stands in an abbreviation or a quotation."""
    if mark[1]:  # in a script without capitals; after a quotation that asks or calls the sentence runs on
        return not mark[2] or mark[1][-1] not in "！？" or mark.end() == len(text)
    following = _NEXT.match(text, mark.end())
    if not following or (following[1].islower() and not caseless):
        return mark.end() == len(text)
    last = _LAST_WORD.search(text[max(start, mark.start() - 20) : mark.start()])
    if not last or not mark[0].startswith(".") or mark[0].startswith(".."):
        return True
    before, word = last[0].lower(), following[1].lower()
    if before in _TITLES or (before in _NUMBERED and word[:1].isdigit()):
        return False
    if before.isdigit():  # not the number of an item, and no German ordinal: "im 19. Jahrhundert"
        return mark.start() - start > len(before) + 1 and (len(before) > 2 or word in _COMMON)
    # "in the U.S. The", but "the U.S. Army" and "W. A. Mozart"
    shortened = before in _SHORTENED or _DOTTED.fullmatch(before)
    return not shortened or (word in _COMMON and following[2] != ".")


def _worth(text: str, words: tuple[str, ...]) -> float:
    """Return what a sentence's form makes it worth as a quotation, at most 1."""
    worth = min(1.0, len(words) / 10, 40 / len(words)) * (0.75 if words[0].lower() in _LEANING else 1.0)
    partial = text.count("“") - text.count("”") - text.count("„") or text.count("(") - text.count(")")
    return worth * (0.6 if partial or text.count('"') % 2 or text.endswith(("?", ":")) else 1.0)


def _terms(found: list[_Sentence]) -> tuple[list[list[str]], str]:
    """Return the terms of each sentence, and the top terms of all with their counts, to be read."""
    words = Counter(word for sentence in found for word in sentence.words)
    known = sum(n for word, n in words.items() if word.lower() in _COMMON) > words.total() / 5
    term_of = {word: _term(word, 2 if known else 4) for word in words}
    terms = [[t for w in s.words if (t := term_of[w])] + _HAN_PAIR.findall(s.text) for s in found]
    # The last spelling of a term counts: one without capitals, if any, the most frequent and then the shortest one.
    spelt = {term_of[w]: w for w in sorted(words, key=lambda w: (w.islower(), words[w], -len(w)))}
    counts = Counter(term for sentence in terms for term in sentence)
    top = [(term, n) for term, n in counts.most_common(_TERMS) if n > 1] or counts.most_common(_TERMS // 2)
    return terms, ", ".join(f"{spelt.get(term, term)[:40]} ({n:,})" for term, n in top)


def _term(word: str, shortest: int) -> str:
    """Return what a word counts as; "" for numbers and common words, or words taken for common by length."""
    term = word.lower().replace("’", "'").removesuffix("'s").rpartition("'")[2]  # l'empire, dell'arte, don't
    if len(term) < (shortest if term < "\u0530" else 2) or term[0].isdigit() or term in _COMMON:
        return ""
    return _PLURAL.sub("", re.sub("(?<=..)ies$", "y", term))


def _choose(found: list[_Sentence], terms: list[list[str]], count: int) -> list[_Sentence]:
    """Choose the sentences that have most in common with all others and least with each other; keep their order.

    Theirs is LexRank's degree, the sum of a sentence's cosine similarities (TextRank comes down to it on an undirected
    graph), found as its product with the sum of all vectors; and maximal marginal relevance.
    """
    spread = Counter(term for sentence in terms for term in dict.fromkeys(sentence))
    centre: dict[str, float] = defaultdict(float)
    vectors = []
    for sentence in terms:
        vector = {term: math.log(1 + len(found) / spread[term]) for term in sentence}
        norm = math.hypot(*vector.values())
        vectors.append({term: weight / norm for term, weight in vector.items()})
        for term, weight in vectors[-1].items():
            centre[term] += weight
    scores = [s.worth * sum(w * centre[t] for t, w in v.items()) for s, v in zip(found, vectors, strict=True)]
    best: dict[str, int] = {}  # of a sentence that is repeated only one is quoted
    for i in sorted((i for i, s in enumerate(found) if s.worth), key=lambda i: -scores[i]):
        best.setdefault(found[i].text, i)
    leaders = {found[i].document: i for i in reversed(best.values())}
    first = list(leaders.values()) if 1 < len(leaders) <= count else []
    likeness = dict.fromkeys([*best.values()][:_POOL], 0.0)
    top, chosen = max(scores) or 1.0, list[int]()
    while len(chosen) < count and (first or likeness):
        new = first.pop(0) if first else max(likeness, key=lambda i: scores[i] / top - 0.6 * likeness[i])
        likeness.pop(new, None)
        chosen.append(new)
        for i in likeness:
            near = 0.3 if abs(i - new) <= len(found) // (4 * count) else 0.0  # neighbours tell of one thing
            a, b = sorted((vectors[i], vectors[new]), key=len)
            likeness[i] = max(likeness[i], near, sum(w * b[t] for t, w in a.items() if t in b))
    return [found[i] for i in sorted(chosen)]
