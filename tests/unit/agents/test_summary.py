"""The digest's engine: what it counts, where it sees sentences end, which of them it quotes, and that it ends."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.agents.summary import (
    MAX_QUOTE,
    MAX_SENTENCES,
    Document,
    digest_markdown,
    document_from_json,
    document_from_text,
)

ROOT = Path(__file__).parents[3]
TEXTS = ROOT / "examples" / "texts"

TEA = """\
# Tea in the office

Tea is made in the kitchen. The kettle holds two litres, e.g. enough for eight cups. Dr. Hale drinks
tea at 4.30 p.m. every day.

- Green tea needs water of 80 degrees.
- Black tea needs boiling water.

| Tea | Minutes |
|-----|---------|
| Green | 2 |

```
kettle --on
```

Who washes the cups? The one who drank the last tea washes the cups.
"""

BEES = """\
The weather was dull that week. Honey bees visit flowers to collect nectar and pollen. The cat slept on the chair.
Bees carry pollen from flower to flower, and so honey bees pollinate most flowers in the orchard. Somebody rang the
bell. Without pollination by honey bees the flowers in the orchard bear no fruit. Trains were late again.
"""


def digest(text: str, sentences: int = 5) -> str:
    return digest_markdown([document_from_text("text", text)], sentences=sentences)


def counts(markdown: str) -> str:
    return markdown.split("\n")[2].strip("*.")


def key_sentences(markdown: str) -> list[str]:
    quoted = markdown.partition("\n## Key sentences\n")[2].rpartition("\n## Top terms\n")[0]
    return re.findall(r"^\d+\. (.*)$", quoted, re.MULTILINE)


def top_terms(markdown: str) -> str:
    return markdown.rpartition("\n## Top terms\n")[2].strip()


def split(text: str) -> list[str]:
    """Return all sentences of a text; in a text of less than `MAX_SENTENCES` all are key sentences."""
    return key_sentences(digest(text, MAX_SENTENCES))


def fold(text: str) -> str:
    return " ".join(text.split())


# ------------------------------------------------------------------------------------------------- the whole digest


def test_a_digest_has_a_heading_counts_key_sentences_and_top_terms() -> None:
    assert digest_markdown([document_from_text("tea.md", TEA)], sentences=3) == (
        "# Digest of tea.md\n"
        "\n"
        "**1 document, 4 paragraphs, 7 sentences, 59 words (39 distinct), under a minute to read.**\n"
        "\n"
        "## Key sentences\n"
        "\n"
        "1. The kettle holds two litres, e.g. enough for eight cups.\n"
        "2. Dr. Hale drinks tea at 4.30 p.m. every day.\n"
        "3. The one who drank the last tea washes the cups.\n"
        "\n"
        "## Top terms\n"
        "\n"
        "tea (7), cups (3), Green (2), needs (2), water (2), washes (2)\n"
    )


@pytest.mark.parametrize(
    ("name", "expected", "terms"),
    [
        (
            "dragomans.md",
            "1 document, 9 paragraphs, 40 sentences, 841 words (407 distinct), about 4 minutes to read",
            "dragoman (10), language (8), Ottoman (5), interpreters (5)",
        ),
        (
            "lighthouses.txt",
            "1 document, 9 paragraphs, 43 sentences, 860 words (420 distinct), about 4 minutes to read",
            "keeper (9), light (9), lighthouses (7), lamp (6)",
        ),
    ],
)
def test_the_example_texts_are_digested_as_their_readers_would(name: str, expected: str, terms: str) -> None:
    text = (TEXTS / name).read_text(encoding="utf-8")
    markdown = digest_markdown([document_from_text(name, text)])
    chosen = key_sentences(markdown)
    assert counts(markdown) == expected
    assert top_terms(markdown).startswith(terms)
    assert len(chosen) == 5
    assert all(sentence in fold(text) for sentence in chosen)
    assert chosen[0].startswith(("For several centuries, almost nothing", "For most of their history"))


def test_the_key_sentences_are_those_that_share_most_with_the_rest() -> None:
    assert key_sentences(digest(BEES, 3)) == [
        "Honey bees visit flowers to collect nectar and pollen.",
        "Bees carry pollen from flower to flower, and so honey bees pollinate most flowers in the orchard.",
        "Without pollination by honey bees the flowers in the orchard bear no fruit.",
    ]


def test_forms_of_a_word_count_as_one_term_spelt_in_its_most_frequent_form() -> None:
    text = "Keepers left. A keeper's lamp and two keepers. The city grew, as cities do. UNESCO came. UNESCO went."
    assert top_terms(digest(text)) == "keepers (3), city (2), UNESCO (2)"


def test_terms_that_occur_once_are_listed_only_if_none_occurs_twice() -> None:
    assert top_terms(digest("One quick fox jumps.")) == "quick (1), fox (1), jumps (1)"
    assert top_terms(digest("It is what it is.")) == "Only common words."


def test_a_sentence_that_is_repeated_is_quoted_once() -> None:
    text = "All rights in this text are reserved. " * 9 + "The lighthouse was built of granite blocks."
    assert split(text) == [text[:37], "The lighthouse was built of granite blocks."]


def test_of_two_sentences_that_say_the_same_the_second_gives_way() -> None:
    text = (
        "The harbour lights guide fishing boats home at night. "
        "At night the harbour lights guide the fishing boats home. "
        "A storm sank several fishing boats near the harbour. "
        "Harbour pilots board ships beyond the lights."
    )
    chosen = key_sentences(digest(text, 2))
    assert chosen[0] == "The harbour lights guide fishing boats home at night."
    assert "guide the fishing boats home" not in chosen[1]


def test_a_sentence_that_leans_on_the_one_before_is_passed_over() -> None:
    sentence = "lighthouse keepers trimmed the lamps of the lighthouse every night"
    text = f"Some words. However, {sentence}. Old {sentence}. More words."
    assert key_sentences(digest(text, 1)) == [f"Old {sentence}."]


# ---------------------------------------------------------------------------------------------------------- counts


def test_headings_and_tables_have_words_but_no_sentences() -> None:
    markdown = digest("# One two\n\nThree four five.\n\n| six | seven |\n|---|---|\n| eight | nine |\n")
    assert counts(markdown).startswith("1 document, 1 paragraph, 1 sentence, 9 words (9 distinct), ")
    assert key_sentences(markdown) == ["Three four five."]


@pytest.mark.parametrize(
    "heading", ["A Heading\n=========", "A Heading\n---------", "## A Heading", "A Heading\n"]
)
def test_headings_of_every_style_are_not_quoted(heading: str) -> None:
    assert split(f"{heading}\nIts text stands here.") == ["Its text stands here."]


def test_a_text_of_nothing_but_headings_or_tables_is_quoted_from_them() -> None:
    assert split("# Alpha beta") == ["Alpha beta"]
    assert split("| a | b |\n|---|---|\n| c | d |") == ["| a | b |", "| c | d |"]


def test_fenced_code_is_left_out_unless_there_is_nothing_else() -> None:
    markdown = digest("Three words here.\n~~~\ncode is not text\n~~~\n")
    assert counts(markdown).startswith("1 document, 1 paragraph, 1 sentence, 3 words ")
    assert split("```markdown\nThe whole answer is fenced.\n```") == ["The whole answer is fenced."]
    assert split("```\nThe fence is never closed.") == ["The fence is never closed."]


def test_numbers_abbreviations_and_joined_words_count_as_one_word_each() -> None:
    markdown = digest("It's 1,250.50 well-known U.S. e-mails, e.g. example.com, not a,b.")
    assert counts(markdown).startswith("1 document, 1 paragraph, 1 sentence, 10 words (10 distinct), ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [(114, "under a minute to read"), (116, "about 1 minute to read"), (2300, "about 10 minutes to read")],
)
def test_reading_takes_a_minute_for_230_words(words: int, expected: str) -> None:
    assert counts(digest("word " * words)).endswith(expected)


def test_han_and_kana_characters_are_counted_one_by_one() -> None:
    markdown = digest("灯塔的光。灯台の光。")
    assert counts(markdown).startswith("1 document, 1 paragraph, 2 sentences, 8 words (6 distinct), ")
    assert counts(digest("灯。" * 2250)).endswith("about 5 minutes to read")


# ---------------------------------------------------------------------------------------------- where sentences end

SENTENCES = {  # with a bar wherever a sentence ends
    "titles": "Dr. Hale met Mrs. Marsh and Prof. Ito.| They talked.",
    "initials": "J. R. R. Tolkien wrote it.| W. A. Mozart did not.",
    "acronyms": "He left the U.S. Army in May.| He stayed in the U.S.| The weather was good.",
    "latin": "Bring food, e.g. Dutch cheese, i.e. Gouda, etc. and bread.| We eat pears, etc.| The rest is gone.",
    "companies": "Acme Inc. announced it.| It was sold to Acme Corp.| The price rose.",
    "numbers": "See Fig. 3 and No. 5 on p. 12.| He said no.| Then it cost $3.50, or 3.14 a piece.| Pi.",
    "times": "We meet at 5 p.m. on Jan. 5.| The end is at 7 p.m.| All leave.",
    "years": "It fell in 1999.| Nobody knew.",
    "ordinals": "Im 19. Jahrhundert, am 3. Mai, z. B. in Kiel, kam Dr. Voss.| Das war gut.",
    "ellipses": "Wait... what happened… then?| Silence…| And nothing more...",
    "quotes": '"Stop!" he said.| "Why?" she asked.| “Because.”| He said ‘no.’| (It was late.)| „Gut.“| Ja.',
    "guillemets": "« Oui. »| Il partit.| Quoi ?| Rien !",
    "notes": "It works.[1]| It is known.[12][13]| End.",
    "markup": "**It is bold.**| _So it is._| See [the page](https://example.com/a.html?b=c).| `End.`",
    "runs": "What?!| No!!!| Oh.",
    "inverted": "¿Qué?| ¡No!| Sí.",
    "brands": "We bought one.| iPhones are sold at Yahoo! and here.",
    "chinese": "天气很好。|我们去公园吧！|他说：“你好。”|然后走了。",
    "japanese": "「行け！」と彼は言った。|はい。",
    "hindi": "यह एक वाक्य है।| यह दूसरा है।",
    "arabic": "هل أنت بخير؟| نعم أنا بخير.",
}


@pytest.mark.parametrize("text", SENTENCES.values(), ids=SENTENCES)
def test_sentences_end_where_a_reader_sees_them_end(text: str) -> None:
    assert split(text.replace("|", "")) == [sentence.strip() for sentence in text.split("|")]


def test_a_text_without_capitals_still_has_sentences() -> None:
    assert split("hello there. how are you? i am fine") == ["hello there.", "how are you?", "i am fine"]


def test_a_text_without_stops_is_one_sentence() -> None:
    assert split("just a few words\nthat run on and on") == ["just a few words that run on and on"]
    assert split("Word") == ["Word"]


def test_lines_that_do_not_run_on_are_sentences_of_their_own() -> None:
    log = ["2024-05-01 INFO Started server", "2024-05-01 WARN Disk is full", "2024-05-02 INFO Stopped server"]
    assert split("\n".join(log)) == log
    notes = ["Buy milk and bread", "Call the plumber", "Write to the bank"]
    assert split("\n\n".join(notes)) == notes


def test_list_items_and_quotations_are_split_from_their_markers() -> None:
    items = "Three things:\n- One is here.\n  It goes on.\n* Two is there.\n1. First step.\n2) Second step.\n"
    assert split(f"{items}\n> Quoted lines\n> go on.\n") == [
        "Three things:",
        "One is here.",
        "It goes on.",
        "Two is there.",
        "First step.",
        "Second step.",
        "Quoted lines go on.",
    ]


def test_a_number_that_happens_to_begin_a_line_of_prose_is_no_list_item() -> None:
    text = "The house has the number\n12. It stands in a row."
    assert split(text) == ["The house has the number 12.", "It stands in a row."]


# ------------------------------------------------------------------------------------------------------------ quoting


def test_key_sentences_stand_in_the_order_of_the_text_however_they_rank() -> None:
    chosen = key_sentences(digest(BEES, 4))
    places = [fold(BEES).index(sentence) for sentence in chosen]
    assert places == sorted(places)


def test_a_sentence_is_quoted_with_its_markup_and_its_white_space_folded() -> None:
    text = "The *dragoman*\n  spoke\t`Turkish` & <b>Greek</b>."
    assert split(text) == ["The *dragoman* spoke `Turkish` & <b>Greek</b>."]


def test_an_overlong_sentence_is_quoted_by_its_beginning() -> None:
    (words,) = split("word " * 1000)
    assert words.endswith("word […]") and MAX_QUOTE - 5 <= len(words.removesuffix(" […]")) <= MAX_QUOTE
    assert split("x" * 5000) == ["x" * MAX_QUOTE + " […]"]


def test_control_characters_and_lone_surrogates_do_not_reach_the_digest() -> None:
    markdown = digest_markdown([document_from_text("a\x00b\ud800", "One\x00two \ud83d three.\x07")])
    assert markdown.encode() and key_sentences(markdown) == ["One two three."]


def test_a_title_cannot_break_the_heading() -> None:
    markdown = digest_markdown([document_from_text("a\n# b [c](d) <e> f_g", "Some words.")])
    assert markdown.startswith("# Digest of a # b \\[c\\](d) \\<e\\> f\\_g\n")
    assert digest_markdown([document_from_text(" ", "Some words.")]).startswith("# Digest of untitled\n")


def test_several_documents_are_counted_together_and_each_is_quoted() -> None:
    bees, tea = document_from_text("bees.txt", BEES), document_from_text("tea.md", TEA)
    mail = document_from_text("mail", "Please call back.")
    markdown = digest_markdown([bees, mail, tea], sentences=4)
    assert markdown.startswith("# Digest of 3 documents\n\n**3 documents, 6 paragraphs, 15 sentences, ")
    quoted = re.findall(r"^(?:\*\*.*\*\*|\d\.)", markdown.partition("## Key")[2], re.MULTILINE)
    assert quoted == ["**bees.txt**", "1.", "2.", "**mail**", "3.", "**tea.md**", "4."]
    assert "\n3. Please call back.\n" in markdown


def test_a_document_that_is_sent_twice_is_quoted_once() -> None:
    document = document_from_text("once", "The same words are here.")
    assert key_sentences(digest_markdown([document, document])) == ["The same words are here."]


@pytest.mark.parametrize("sentences", [1, 2, 7, MAX_SENTENCES])
def test_no_more_sentences_are_quoted_than_were_asked_for(sentences: int) -> None:
    assert len(key_sentences(digest(TEA, sentences))) == min(sentences, 7)


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "text", ["", " \n\t\u3000", "...", "?!", "---\n***\n", "🙂 🙂", "\x00\x01", "```\n```"]
)
def test_a_text_without_words_is_refused_by_its_title(text: str) -> None:
    with pytest.raises(ValueError, match=r"^“notes” holds no words\.$"):
        document_from_text("notes", text)


def test_documents_without_words_are_refused() -> None:
    for documents in ([], [Document("empty", ""), Document("blank", "\n")]):
        with pytest.raises(ValueError, match=r"^No words were sent\.$"):
            digest_markdown(documents)


@pytest.mark.parametrize("sentences", [-1, 0, MAX_SENTENCES + 1])
def test_a_number_of_sentences_out_of_range_is_refused(sentences: int) -> None:
    with pytest.raises(ValueError, match=f"has from 1 to {MAX_SENTENCES} key sentences, not {sentences}"):
        digest(TEA, sentences)


# -------------------------------------------------------------------------------------------------------------- JSON

REPORT = {
    "title": "Quarterly review",
    "published": True,
    "editor": None,
    "summary": "The quarter was strong. Revenue rose by 12 percent.",
    "authors": [{"name": "Ada", "role": "editor"}, {"name": "Max", "role": "analyst"}],
    "samples": list(range(200)),
    "risks": ["The supplier may fail to deliver in time.", "A competitor has entered the market.", "short"],
}


def test_a_json_value_is_told_as_prose() -> None:
    document = document_from_json("report.json", REPORT)
    assert document.text == (
        "- title: Quarterly review; published: true.\n\n"
        "# summary\n\n"
        "The quarter was strong. Revenue rose by 12 percent.\n\n"
        "- authors — name: Ada; role: editor.\n\n"
        "- authors — name: Max; role: analyst.\n\n"
        "- samples — 200 numbers from 0 to 199.\n\n"
        "- risks — short.\n\n"
        "# risks\n\n"
        "The supplier may fail to deliver in time.\n\n"
        "A competitor has entered the market."
    )
    assert (document.members, document.depth) == (7 + 2 + 2 * 2 + 200 + 3, 3)


def test_the_digest_of_json_prefers_its_prose_to_its_records() -> None:
    markdown = digest_markdown([document_from_json("report.json", REPORT)], sentences=3)
    assert counts(markdown).endswith("under a minute to read, 216 JSON members, 3 levels deep")
    assert key_sentences(markdown) == [
        "Revenue rose by 12 percent.",
        "The supplier may fail to deliver in time.",
        "A competitor has entered the market.",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("hello", "- hello."),
        (42, "- 42."),
        (False, "- false."),
        ([1, "two", 3.5], "- 1; two; 3.5."),
        ({"a": {"b": {"c": "deep"}}}, "- a b — c: deep."),
        ("A sentence of enough words is prose.", "A sentence of enough words is prose."),
        ({"tags": ["x", None, "y "]}, "- tags — x; y."),
    ],
)
def test_small_json_values_are_told_too(value: object, text: str) -> None:
    assert document_from_json("value", value).text == text


@pytest.mark.parametrize("value", [None, "", "  ", "…", {}, [], [[], {}], {"a": None, "b": [""]}])
def test_json_with_nothing_to_tell_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^“value” holds no words\.$"):
        document_from_json("value", value)


def test_json_may_be_nested_deeper_than_python_recurses() -> None:
    value: object = "The innermost value is a sentence."
    for _ in range(20_000):
        value = [value]
    document = document_from_json("deep", {"key": value})
    assert document.text == "# key\n\nThe innermost value is a sentence."
    assert (document.members, document.depth) == (20_001, 20_001)


def test_a_long_key_is_not_repeated_in_full_by_all_below_it() -> None:
    document = document_from_json("keys", {"k" * 10_000: [{"a": n} for n in range(1000)]})
    assert len(document.text) < 200_000


# ------------------------------------------------------------------------------------------------- bounds, properties

MIB = 1 << 20
HOSTILE = {
    "no spaces": "a",
    "dots": ".",
    "dots and words": "a. ",
    "exclamations": "Ah! ",
    "quotation marks": '."',
    "brackets": ". (",
    "quotation levels": "> ",
    "bullets": "- ",
    "items": "- a\n",
    "headings": "# a\n",
    "tables": "|a",
    "fences": "```\na\n",
    "emphasis": "**a* ",
    "links": "[a](",
    "notes": ".[1",
    "marks": "a\u0301",
    "hyphens": "a-",
    "commas": "1,",
    "abbreviations": "e.g. ",
    "initials": "U.S. ",
    "item numbers": "1. ",
    "han": "灯",
    "surrogates": "\ud800",
    "lines": "\n",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_twice_the_text_takes_at_most_twice_the_calls(unit: str) -> None:
    once, twice = (_calls(unit * (size // len(unit))) for size in (20_000, 40_000))
    assert twice <= 2.1 * once + 1000


def _calls(text: str) -> int:
    """Count the calls of functions, built-in ones among them, that a digest takes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        digest(text)
    except ValueError:
        pass
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "text",
    [
        *(unit * (MIB // len(unit)) for name, unit in HOSTILE.items() if len(unit) < 3 and name != "lines"),
        " " * MIB + "a",
        "a" + "*" * MIB,
        "a. " + "(" * MIB,
        ". ." * 1000 + '"' * MIB + "a",
        BEES * (MIB // len(BEES)),
    ],
    ids=lambda text: repr(text[:4] + text[-2:]),
)
def test_a_mebibyte_of_anything_is_digested_or_refused(text: str) -> None:
    # No clock: whatever goes back and forth in a text of this size runs into the time limit of every test.
    _digest_or_refuse(text)


REFUSALS = ("“text” holds no words.", "No words were sent.")


def _digest_or_refuse(text: str) -> list[str]:
    """Return the key sentences, which are none if the text is refused."""
    answer = _answer(lambda: digest(text))
    if answer in REFUSALS:
        return []
    chosen = key_sentences(answer)
    assert answer.startswith("# Digest of text\n\n**1 document, ")
    assert answer.encode() and len(answer) < 6 * MAX_QUOTE
    assert 1 <= len(chosen) <= 5
    return chosen


def _answer(make: Callable[[], str]) -> str:
    try:
        return make()
    except ValueError as refusal:
        return str(refusal)


MARKUP = st.text(st.sampled_from(list("aB1 .!?…\n\n\"'“”()[]*_#>-|`~:=。「」\u0301\xa0")), max_size=300)
PROSE = st.text(st.sampled_from(list("aBcD1 .!?\n\"'(),;*_é灯。")), max_size=300)


@settings(deadline=None)
@given(st.one_of(st.text(), MARKUP))
def test_any_text_is_digested_in_its_own_words_or_refused(text: str) -> None:
    def squeezed(part: str) -> str:
        return re.sub(r"[\s>\x00-\x1f\x7f\ufeff\ud800-\udfff]", "", part)

    for sentence in _digest_or_refuse(text):
        assert squeezed(sentence) in squeezed(text)


@settings(deadline=None)
@given(PROSE)
def test_key_sentences_occur_in_the_text_but_for_folded_white_space(text: str) -> None:
    for sentence in _digest_or_refuse(text):
        assert sentence in fold(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@settings(deadline=None)
@given(JSON)
def test_any_json_value_is_digested_or_refused(value: object) -> None:
    answer = _answer(lambda: digest_markdown([document_from_json("value", value)]))
    assert answer.startswith("# Digest of value\n") or answer == "“value” holds no words."


@settings(deadline=None)
@given(st.lists(MARKUP, min_size=1, max_size=4), st.integers(1, MAX_SENTENCES))
def test_key_sentences_of_any_texts_are_never_more_than_asked_for(texts: list[str], number: int) -> None:
    documents = [Document(f"{n}", text) for n, text in enumerate(texts)]
    answer = _answer(lambda: digest_markdown(documents, sentences=number))
    assert answer in REFUSALS or 1 <= len(key_sentences(answer)) <= number


def test_the_same_documents_give_the_same_digest_in_every_process() -> None:
    program = (
        "import json, sys; from dragoman.agents.summary import *;"
        "texts = json.load(sys.stdin);"
        "print(json.dumps(digest_markdown([document_from_text(*text) for text in texts], sentences=9)))"
    )
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in sorted(TEXTS.iterdir())]
    expected = digest_markdown([document_from_text(*text) for text in texts], sentences=9)
    for seed in ("0", "1", "2024"):
        process = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(texts),
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(process.stdout) == expected
