"""Measures README.md and the pages under docs/, and fails over the limits: `python -m tools.site.measure`.

Prose is what paragraphs and list items say: no code blocks, tables, headings or HTML. A code span counts as one word.
Words are counted as `wc -w` counts them, over the whole page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
README_LINES, README_WORDS = 120, 700
DOCS_WORDS = 45_000
SENTENCE_WORDS = 16
LINE_CHARACTERS = 160

_DELIMITER = re.compile(r"^\s*\|?(\s*:?-{2,}:?\s*\|)+\s*(:?-{2,}:?\s*)?$")
_CELL_END = re.compile(r"(?<!\\)\|")
_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)[.!?…]+[)\"'”’]*\s+(?=[\"'“(\[]?[A-Z0-9`])")
_CODE = "`code`"


class Page(msgspec.Struct, frozen=True):
    """What one page measures; `long_lines` and `broken_tables` are line numbers, from 1."""

    name: str
    lines: int
    words: int
    sentences: int
    prose_words: int
    longest_line: int
    long_lines: tuple[int, ...]
    broken_tables: tuple[int, ...]

    @property
    def words_per_sentence(self) -> float:
        """The average length of a sentence of prose."""
        return self.prose_words / self.sentences if self.sentences else 0.0


def measure(name: str, text: str) -> Page:
    """Measure a page of Markdown."""
    lines = text.splitlines()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    lengths = [len(sentence.split()) for said in _prose(tokens) for sentence in _sentences(said)]
    return Page(
        name=name,
        lines=len(lines),
        words=len(text.split()),
        sentences=len(lengths),
        prose_words=sum(lengths),
        longest_line=max(map(len, lines), default=0),
        long_lines=tuple(i for i, line in enumerate(lines, 1) if len(line) > LINE_CHARACTERS),
        broken_tables=tuple(sorted({*_uneven(tokens, lines), *_unread(tokens, lines), *_joined(tokens, lines)})),
    )


def _prose(tokens: Sequence[Token]) -> Iterator[str]:
    """The plain text of each paragraph, those of list items included."""
    for before, token in pairwise(tokens):
        if before.type == "paragraph_open" and token.type == "inline":
            yield "".join(map(_text, token.children or ()))


def _text(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "code_inline":
        return _CODE
    return token.content if token.type == "text" else ""


def _sentences(said: str) -> list[str]:
    return [part for part in _SENTENCE_END.split(said) if any(map(str.isalnum, part))]


def _uneven(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[int]:
    """Rows with more or fewer cells than their table's header: a reader of Markdown drops or invents cells silently."""
    columns = 0
    for token in tokens:
        if token.map and token.type == "table_open":
            columns = _cells(lines[token.map[0]])
        elif token.map and token.type == "tr_open" and _cells(lines[token.map[0]]) != columns:
            yield token.map[0] + 1


def _cells(row: str) -> int:
    return len(_CELL_END.split(row.strip().removeprefix("|").removesuffix("|")))


def _unread(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[int]:
    """Rows of dashes within a paragraph: their header has another number of cells, so it is no table at all."""
    for token in tokens:
        if token.type == "paragraph_open" and token.map:
            yield from (i + 1 for i in range(*token.map) if _DELIMITER.match(lines[i]))


def _joined(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[int]:
    """Tables right below other text: the site runs them into it."""
    for token in tokens:
        if token.type == "table_open" and token.map and token.map[0] and _runs_in(lines[token.map[0] - 1]):
            yield token.map[0] + 1


def _runs_in(before: str) -> bool:
    return bool(before.strip()) and not before.startswith(("#", "<!--"))


def faults(readme: Page, docs: Sequence[Page]) -> Iterator[str]:
    """Each limit that is exceeded, in a sentence."""
    if readme.lines > README_LINES:
        yield f"{readme.name} has {readme.lines} lines; at most {README_LINES}"
    if readme.words > README_WORDS:
        yield f"{readme.name} has {readme.words} words; at most {README_WORDS}"
    whole = total("docs", docs)
    if whole.words > DOCS_WORDS:
        yield f"docs have {whole.words:,} words; at most {DOCS_WORDS:,}"
    for page in (readme, whole):
        if page.words_per_sentence > SENTENCE_WORDS:
            yield f"{page.name}: {page.words_per_sentence:.1f} words a sentence; at most {SENTENCE_WORDS} on average"
    for page in (readme, *docs):
        yield from (f"{page.name}:{i}: a line over {LINE_CHARACTERS} characters" for i in page.long_lines)
        yield from (f"{page.name}:{i}: a broken table" for i in page.broken_tables)


def total(name: str, pages: Sequence[Page]) -> Page:
    """What several pages measure together."""
    return Page(
        name=name,
        lines=sum(page.lines for page in pages),
        words=sum(page.words for page in pages),
        sentences=sum(page.sentences for page in pages),
        prose_words=sum(page.prose_words for page in pages),
        longest_line=max((page.longest_line for page in pages), default=0),
        long_lines=(),
        broken_tables=(),
    )


def table(pages: Sequence[Page]) -> Iterator[str]:
    """The measures as lines of text, a page each."""
    width = max(len(page.name) for page in pages)
    yield f"{'page':<{width}}  {'lines':>6} {'words':>7} {'sentences':>9} {'words/sentence':>14} {'longest line':>12}"
    for page in pages:
        figures = f"{page.sentences:>9,} {page.words_per_sentence:>14.1f} {page.longest_line:>12,}"
        yield f"{page.name:<{width}}  {page.lines:>6,} {page.words:>7,} {figures}"


def main() -> int:
    """Print the table and the faults; 1 when there is a fault."""
    readme = measure("README.md", (ROOT / "README.md").read_text())
    found = sorted((ROOT / "docs").rglob("*.md"))
    docs = [measure(str(path.relative_to(ROOT)), path.read_text()) for path in found]
    print("\n".join(table([readme, *docs, total("docs, all pages", docs)])))
    wrong = list(faults(readme, docs))
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
