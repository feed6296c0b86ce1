"""The measures of the documentation, on pages small enough to count by hand."""

from __future__ import annotations

import pytest

from tools.site.measure import Page, faults, measure, table, total


@pytest.mark.parametrize(
    ("text", "sentences", "words"),
    [
        pytest.param("One two three. Four five.\n", 2, 5, id="two sentences in a paragraph"),
        pytest.param("One two\nthree four.\n", 1, 4, id="a sentence over two lines"),
        pytest.param("- one two\n- three four five\n", 2, 5, id="list items without a full stop"),
        pytest.param("It costs 1.5 units, e.g. Mondays. Next.\n", 2, 7, id="points that end no sentence"),
        pytest.param("Run `htas cost --by namespace` now.\n", 1, 3, id="a code span is one word"),
        pytest.param("[Two words](a/page/with-a-long-name.md) here.\n", 1, 3, id="a link's text, not its address"),
        pytest.param("![a picture](x.svg)\n", 0, 0, id="no alternative text"),
        pytest.param("# A heading\n\n    code here\n\n```sh\nmore code\n```\n", 0, 0, id="no headings and no code"),
        pytest.param("| a | b |\n|---|---|\n| c d | e |\n", 0, 0, id="no tables"),
        pytest.param("<p>some text</p>\n", 0, 0, id="no HTML"),
    ],
)
def test_prose(text: str, sentences: int, words: int) -> None:
    page = measure("x.md", text)
    assert (page.sentences, page.prose_words) == (sentences, words)


def test_words_are_those_of_the_whole_page() -> None:
    assert measure("x.md", "# Title\n\n| a | b |\n|---|---|\n| c | d |\n").words == 13


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        pytest.param("| a | b |\n|---|---|\n| c | d |\n", (), id="even"),
        pytest.param("# Title\n| a | b |\n|---|---|\n| c | d |\n", (), id="right below a heading"),
        pytest.param("| a | b |\n|---|---|\n| c |\n| c | d | e |\n", (3, 4), id="too few and too many cells"),
        pytest.param("| a | b |\n|---|---|\n| c \\| d | e |\n", (), id="an escaped bar"),
        pytest.param("| a | b | c |\n|---|---|\n| d | e | f |\n", (2,), id="a header of another width is no table"),
        pytest.param("```\ncode\n```\n| a | b |\n|---|---|\n| c | d |\n", (4,), id="right below other text"),
    ],
)
def test_broken_tables(text: str, broken: tuple[int, ...]) -> None:
    assert measure("x.md", text).broken_tables == broken


def page(**measures: int) -> Page:
    sound = {"lines": 120, "words": 700, "sentences": 1, "prose_words": 16, "longest_line": 160}
    return Page(name="README.md", long_lines=(), broken_tables=(), **(sound | measures))


@pytest.mark.parametrize(
    ("readme", "docs", "said"),
    [
        pytest.param(page(), page(words=45_000), [], id="all limits just kept"),
        pytest.param(page(lines=121), page(), ["README.md has 121 lines; at most 120"], id="lines"),
        pytest.param(page(words=701), page(), ["README.md has 701 words; at most 700"], id="words"),
        pytest.param(page(), page(words=45_001), ["docs have 45,001 words; at most 45,000"], id="words of the docs"),
        pytest.param(
            page(prose_words=17), page(), ["README.md: 17.0 words a sentence; at most 16 on average"], id="sentences"
        ),
        pytest.param(
            measure("README.md", "x" * 161), page(), ["README.md:1: a line over 160 characters"], id="a long line"
        ),
        pytest.param(
            measure("README.md", "| a |\n|---|\n| b | c |\n"), page(), ["README.md:3: a broken table"], id="a table"
        ),
    ],
)
def test_limits(readme: Page, docs: Page, said: list[str]) -> None:
    assert list(faults(readme, [docs])) == said


def test_pages_are_added_up() -> None:
    both = total("docs", [page(), page(words=300, longest_line=170, prose_words=10)])
    assert (both.words, both.lines, both.longest_line, both.words_per_sentence) == (1_000, 240, 170, 13.0)
    (head, *rows) = table([page(), both])
    assert head.split() == ["page", "lines", "words", "sentences", "words/sentence", "longest", "line"]
    assert [row.split() for row in rows] == [
        ["README.md", "120", "700", "1", "16.0", "160"],
        ["docs", "240", "1,000", "2", "13.0", "170"],
    ]
