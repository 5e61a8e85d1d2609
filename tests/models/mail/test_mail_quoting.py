"""New and quoted text in the languages and layouts of real mail programs."""

from __future__ import annotations

import pytest

from models.mail.diagnostics import Diagnostics
from models.mail.html_text import html_to_text
from models.mail.quoting import split_quoted_text

INTRODUCTIONS = {
    "English": "On Mon, Jun 3, 2024 at 4:40 PM Ann Lee <ann@example.org> wrote:",
    "English, wrapped": "On Mon, Jun 3, 2024 at 4:40 PM Ann Lee with a long name\n<ann@example.org> wrote:",
    "German": "Am Mo., 3. Juni 2024 um 16:40 Uhr schrieb Ann Lee <ann@example.org>:",
    "German, wrapped": "Am 03.06.2024 um 16:40 schrieb Ann Lee von der langen Abteilung\n<ann@example.org>:",
    "French": "Le lun. 3 juin 2024 à 16:40, Ann Lee <ann@example.org> a écrit :",
    "Spanish": "El lun, 3 jun 2024 a las 16:40, Ann Lee (<ann@example.org>) escribió:",
    "Italian": "Il giorno lun 3 giu 2024 alle ore 16:40 Ann Lee <ann@example.org> ha scritto:",
    "Dutch": "Op ma 3 jun 2024 om 16:40 schreef Ann Lee <ann@example.org>:",
    "Portuguese": "Em seg., 3 de jun. de 2024 às 16:40, Ann Lee <ann@example.org> escreveu:",
    "Outlook": "From: Ann Lee\nSent: Monday, June 3, 2024 4:40 PM\nTo: Bob\nSubject: x",
    "German Outlook": "Von: Ann Lee\nGesendet: Montag, 3. Juni 2024 16:40\nAn: Bob\nBetreff: x",
    "horizontal rule": "-----Original Message-----",
    "German, horizontal rule": "-----Ursprüngliche Nachricht-----",
    "Gmail forward": "---------- Forwarded message ----------",
    "Apple forward": "Begin forwarded message:",
}  # fmt: skip


@pytest.mark.parametrize("introduction", INTRODUCTIONS.values(), ids=INTRODUCTIONS.keys())
def test_text_after_an_introduction_is_quoted(introduction: str) -> None:
    new, quoted = split_quoted_text(f"That suits me.\nBob\n\n{introduction}\n\nShall we meet?\nAnn")
    assert new == "That suits me.\nBob"
    assert quoted.endswith("Shall we meet?\nAnn")


@pytest.mark.parametrize(
    "text",
    [
        "I need the following:\n- a chair\n- a table",
        "On Monday the parcel arrived.\nIt was empty.",
        "Two questions:\nFirst: where is it?",
        "--\nBob\nSales",
        "Name: Bob\nOrder: 17\nMy question: when does it come?",
    ],
)
def test_ordinary_text_is_not_an_introduction(text: str) -> None:
    assert split_quoted_text(text) == (text, "")


def test_replies_between_quoted_lines_are_new() -> None:
    new, quoted = split_quoted_text("> Where is it?\nIn Rome.\n> > And when?\n>> Soon?\nIn May.")
    assert new == "In Rome.\nIn May."
    assert quoted == "Where is it?\nAnd when?\nSoon?"


def test_quoted_lines_inside_quoted_text_lose_their_marks() -> None:
    new, quoted = split_quoted_text("ok\n-----Original Message-----\nfirst\n> older\nend")
    assert new == "ok"
    assert quoted == "-----Original Message-----\nfirst\nolder\nend"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>un<b>believ</b>able</p>", "unbelievable"),
        ("a<br>b<div>c</div>d", "a\nb\nc\nd"),
        ("<table><tr><td>Total</td><td>5</td></tr><tr><td>x</td></tr></table>", "Total 5\nx"),
        ("<ul><li>one<li>two</ul>", "one\ntwo"),
        ("<pre>a\n> b</pre>", "a\n> b"),
        ("<style>x{}</style><script>y()</script><!-- z --><title>t</title>w", "w"),
        ("<!--[if mso]>hidden<![endif]-->seen", "seen"),
        ("<div style='DISPLAY : none'>x</div><p hidden>y</p><span style='font-size:0px'>z</span>w", "w"),
        ("<span style='font-size:0.9em'>small</span>", "small"),
        ("<img alt=x style='display:none'>after<input hidden>all", "afterall"),
        ("&lt;b&gt; &amp; &#8364; caf&eacute;", "<b> & € café"),
        ("<blockquote>q<blockquote>r</blockquote></blockquote>s", "> q\n> r\ns"),
        ("a<o:p>b</o:p><font color=red>c</font>", "abc"),
        ("<p>broken <b>markup<p>goes on", "broken markup\ngoes on"),
        ("no markup at all", "no markup at all"),
        ("", ""),
    ],
)
def test_html_gives_its_visible_text(html: str, text: str) -> None:
    assert html_to_text(html, Diagnostics()) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<p title="a > b" hidden>x</p>y', "y"),
        ('<p STYLE = "display:none" style="">x</p>y', "y"),
        ("<p/hidden>x</p>y", "y"),
        ("<p =hidden>x", "x"),
        ("<div class='a gmail_quote b'>q</div>r", "> q\nr"),
        ("<a href=foo/>t</a>", "t"),
        ("<svg/>z", "z"),
        ('<img alt="<p hidden>">k', "k"),
        ("<p hidden=x", ""),
        ("<p class='open>x</p>", ""),
    ],
)
def test_only_the_attributes_that_matter_are_read(html: str, text: str) -> None:
    assert html_to_text(html, Diagnostics()) == text
