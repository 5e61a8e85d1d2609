"""HTML gives the text that a browser displays."""

from __future__ import annotations

import pytest

from models.mail import Email, read_email, read_message
from models.mail.diagnostics import Diagnostics
from models.mail.html_text import html_to_text


def text(html: str) -> str:
    return html_to_text(html, Diagnostics())


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<p style="font-size:0px">x<b style="font-size:13px">y</b></p>', "y"),
        ('<p style="font-size:0">x<b style="font-size:2em">y</b><b style="font-size:inherit">z</b></p>', ""),
        ('<p style="font-size:0">x<b style="font:bold 12px/1 Arial">y</b></p>', "y"),
        ('<p style="font-size:0">x<font size="2">y</font><input size="2">z</p>', "y"),
        ('<p style="font:0/0 a">x</p>y', "y"),
        ('<p style="font: 400 13px a">x</p>y', "x\ny"),
        ('<p style="font-size:0"><b style="font-size:9px">x</b> <b style="font-size:9px">y</b></p>', "x y"),
        ('<div style="font-size:0">x<table><tr><td>y</table></div>', "y"),
        ('<!DOCTYPE html><div style="font-size:0">x<table><tr><td>y</table></div>z', "z"),
    ],
)
def test_the_nearest_font_size_decides(html: str, expected: str) -> None:
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<p style="visibility:hidden">x<b style="visibility:visible">y</b></p>', "y"),
        ('<p style="display:none">x<b style="display:block;visibility:visible">y</b></p>', ""),
        ('<p style="opacity:0">x<b style="opacity:1">y</b></p>', ""),
        ('<p style="opacity:0.5">x</p>', "x"),
        ('<p style="max-height:0;overflow:hidden">x</p>', ""),
        ('<p style="max-height:0px; overflow: clip">x</p>', ""),
        ('<p style="max-height:0">x</p>', "x"),
        ('<p style="overflow:hidden;height:10px">x</p>', "x"),
        ('<p style="mso-hide:all">x</p>', "x"),
        ('<p hidden style="display:block">x</p>', "x"),
        ('<p style="display:none;display:block">x</p>', "x"),
        ('<p style="display:none !important;display:block">x</p>', ""),
        ('<p style="/* display:none */ color:red">x</p>', "x"),
        ('<p style="background:url(a);/**/display:none">x</p>', ""),
    ],
)
def test_only_content_that_css_hides_is_hidden(html: str, expected: str) -> None:
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a<!-->b<!-- c -->d", "abd"),
        ("a<!--->b<!---->c<!-- d --!>e<!--!>f-->g", "abceg"),
        ("<style><!-- p { }</style>a", "a"),
        ("<script>x = '<!--'</script>a<style></styles></style >b", "ab"),
        ('<a title="<!-- x">a</a>', "a"),
        ("a<!-- <style> -->b", "ab"),
        ("a<!-- b", "a"),
        ("<!--[if mso]>a<![endif]--><!--[if !mso]><!-->b<!--<![endif]--><![if !mso]>c<![endif]>", "bc"),
    ],
)
def test_comments_end_where_they_end_in_a_browser(html: str, expected: str) -> None:
    assert text(html) == expected


HTML = "<p style='color:red'>Please</p><p>refund</p>"


@pytest.mark.parametrize("html", [f"<html><body>{HTML}</body></html>", f"<!DOCTYPE html>\n{HTML}\nBye", HTML])
def test_html_without_its_content_type_is_read_as_html(html: str) -> None:
    for headers in ("Subject: x", "Subject: x\nContent-Type: text/plain"):
        assert read_message(f"{headers}\n\n{html}".encode()).new_text.startswith("Please\nrefund")
    assert read_email(Email(text=html)).new_text.startswith("Please\nrefund")


@pytest.mark.parametrize(
    "plain", ["<p> is a tag of HTML", "<ann@example.org> wrote", "<b>5 is true</c>\nbut 7 is not", "a <html>"]
)
def test_text_that_only_begins_like_html_stays_plain_text(plain: str) -> None:
    assert read_message(f"Subject: x\n\n{plain}".encode()).new_text == plain


def alternative(plain: str, html: str) -> str:
    raw = (
        "Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n\n"
        f"{plain}\n--b\nContent-Type: text/html; charset=utf-8\n\n{html}\n--b--\n"
    )
    mail = read_message(raw.encode())
    assert mail.learning_parts() == read_email(Email(text=plain, html=html)).learning_parts()
    return mail.new_text


LONG = "<p>Please send the second half of the order to our new address, and refund the rest of it.</p>"


@pytest.mark.parametrize(
    "stub",
    [
        "Your e-mail program does not show HTML. View this message at http://news.example.org/8472/a",
        "Ihr Programm zeigt kein HTML an.",
        "Voir ce message dans un navigateur",
        "-",
        "http://example.org/1",
        "<p></p>",
    ],
)
def test_a_plain_text_that_stands_for_the_html_is_not_read(stub: str) -> None:
    assert alternative(stub, LONG).startswith("Please send the second half")
    if "HTML" in stub:
        assert alternative(stub, "<p>Please refund</p>") == "Please refund"


def test_short_plain_text_is_read_if_the_html_says_the_same() -> None:
    assert alternative("The browser shows no HTML.", "<p>The browser shows no HTML!</p>").endswith("HTML.")
    assert alternative("Thanks.", "<p>Thanks!</p>") == "Thanks."
    assert alternative("Voir le navigateur", '<img src="a.png">') == "Voir le navigateur"


def test_html_in_the_plain_alternative_is_not_read_twice() -> None:
    html = "<html><head><style>p{}</style></head><body><p>Please refund</p></body></html>"
    assert alternative(html, html) == "Please refund"
    assert alternative(html, '<img src="a.png">') == "Please refund"
