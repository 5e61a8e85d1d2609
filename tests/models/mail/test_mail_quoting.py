"""New and quoted text in the languages and layouts of real mail programs."""

from __future__ import annotations

import pytest

from models.mail.diagnostics import Diagnostics
from models.mail.html_text import html_to_text
from models.mail.quote_words import LANGUAGES, spellings
from models.mail.quoting import split_quoted_text

A = "Ann Lee <ann@example.org>"
B = "\u202aAnn Lee\u202c\u200f <\u202aann@example.org\u202c\u200f>"
ATTRIBUTIONS = {
    "English": f"On Mon, Aug 5, 2024 at 10:00 AM {A} wrote:",
    "English, Apple Mail": f"On 5 Aug 2024, at 10:00, {A} wrote:",
    "English, Thunderbird": "On 05/08/2024 10:00, Ann Lee wrote:",
    "English, Outlook on the web": f"{A} wrote on 05/08/2024 10:00:",
    "German": f"Am Mo., 5. Aug. 2024 um 10:00 Uhr schrieb {A}:",
    "German, another form": f"{A} schrieb am Mo., 5. Aug. 2024, 10:00:",
    "German, Thunderbird": "Am 05.08.24 um 10:00 schrieb Ann Lee:",
    "French": f"Le lun. 5 août 2024 à 10:00, {A} a écrit :",
    "Spanish": "El lun, 5 ago 2024 a las 10:00, Ann Lee (<ann@example.org>) escribió:",
    "Catalan": f"El dl., 5 d’ag. 2024, 10:00, {A} va escriure:",
    "Brazilian Portuguese": f"Em seg., 5 de ago. de 2024 às 10:00, {A} escreveu:",
    "Portuguese": f"{A} escreveu (segunda, 5/08/2024 à(s) 10:00):",
    "Portuguese, Apple Mail": f"No dia 05/08/2024, às 10:00, {A} escreveu:",
    "Italian": f"Il giorno lun 5 ago 2024 alle ore 10:00 {A} ha scritto:",
    "Romanian": f"În lun., 5 aug. 2024 la 10:00, {A} a scris:",
    "Dutch": f"Op ma 5 aug 2024 om 10:00 schreef {A}:",
    "Dutch, another form": "Op 5-8-2024 om 10:00 schreef Ann Lee:",
    "Swedish": f"Den mån 5 aug. 2024 kl 10:00 skrev {A}:",
    "Danish": f"Den man. 5. aug. 2024 kl. 10.00 skrev {A}:",
    "Norwegian": f"man. 5. aug. 2024 kl. 10:00 skrev {A}:",
    "Norwegian, Apple Mail": f"5. aug. 2024 kl. 10:00 skrev {A}:",
    "Finnish": "ma 5. elok. 2024 klo 10.00 Ann Lee (ann@example.org) kirjoitti:",
    "Polish": f"pon., 5 sie 2024 o 10:00 {A} napisał(a):",
    "Polish, Apple Mail": f"Wiadomość napisana przez {A} w dniu 5 sie 2024, o godz. 10:00:",
    "Polish, Thunderbird": "W dniu 05.08.2024 o 10:00, Ann Lee pisze:",
    "Czech": f"po 5. 8. 2024 v 10:00 odesílatel {A} napsal:",
    "Czech, Apple Mail": f"5. 8. 2024 v 10:00, {A}:",
    "Czech, Thunderbird": "Dne 05. 08. 24 v 10:00 Ann Lee napsal(a):",
    "Slovak": f"po 5. 8. 2024 o 10:00 {A} napísal(a):",
    "Slovak, Thunderbird": "Dňa 5. 8. 2024 o 10:00 Ann napísal(a):",
    "Slovenian": f"V V pon., 5. avg. 2024 ob 10:00 je oseba {A} napisala:",
    "Croatian": f"pon, 5. kol 2024. u 10:00 {A} napisao je:",
    "Serbian": f"пон, 5. авг 2024. у 10:00 {A} је написао/ла:",
    "Hungarian": f"{A} ezt írta (időpont: 2024. aug. 5., H, 10:00):",
    "Hungarian, Apple Mail": f"2024. aug. 5. dátummal, 10:00 időpontban {A} írta:",
    "Bulgarian": f"На пн, 5.08.2024 г. в 10:00 {A} написа:",
    "Russian": f"пн, 5 авг. 2024 г. в 10:00, {A}:",
    "Russian, Apple Mail": f"5 авг. 2024 г., в 10:00, {A} написал(а):",
    "Russian, Thunderbird": "05.08.2024 10:00, Ann Lee пишет:",
    "Ukrainian": f"пн, 5 серп. 2024 р. о 10:00 {A} пише:",
    "Greek": f"Στις Δευ 5 Αυγ 2024 στις 10:00 π.μ., ο/η {A} έγραψε:",
    "Turkish": f"{A}, 5 Ağu 2024 Pzt, 10:00 tarihinde şunu yazdı:",
    "Turkish, Apple Mail": f"{A} şunları yazdı (5 Ağu 2024 10:00):",
    "Estonian": "Kontakt Ann Lee (<ann@example.org>) kirjutas kuupäeval E, 5. august 2024 kell 10:00:",
    "Latvian":
        "pirmd., 2024. g. 5. aug., plkst. 10:00 — lietotājs Ann Lee (<ann@example.org>) rakstīja:",
    "Lithuanian": f"2024-08-05, pr, 10:00 {A} rašė:",
    "Japanese": f"2024年8月5日(月) 10:00 {A}:",
    "Japanese, Apple Mail": f"2024/08/05 10:00、{A}のメール:",
    "Chinese": f"{A} 于2024年8月5日周一 10:00写道：",
    "Chinese, Apple Mail": f"在 2024年8月5日，上午10:00，{A} 写道：",
    "Chinese, 163.com": "在 2024-08-05 10:00:00，\"Ann\" <ann@example.org> 写道：",
    "Traditional Chinese": f"{A} 於 2024年8月5日 週一 上午10:00寫道：",
    "Korean": f"2024년 8월 5일 (월) 오전 10:00, {A}님이 작성:",
    "Thai": f"ในวันที่ จ. 5 ส.ค. 2024 เวลา 10:00 {A} เขียนว่า:",
    "Vietnamese": f"Vào Th 2, 5 thg 8, 2024 vào lúc 10:00 {A} đã viết:",
    "Indonesian": f"Pada Sen, 5 Agu 2024 pukul 10.00 {A} menulis:",
    "Arabic":
        f"في الاثنين، 5 أغسطس 2024 في 10:00 ص تمت كتابة ما يلي بواسطة {B}:\u202c",
    "Hebrew":
        f"\u202bבתאריך יום ב׳, 5 באוג׳ 2024 ב-10:00 מאת {B}:\u202c",
    "Persian": f"در تاریخ دوشنبه ۵ اوت ۲۰۲۴، ۱۰:۰۰ {A} نوشت:",
    "Hindi": f"सोम, 5 अग॰ 2024 को 10:00 बजे {A} ने लिखा:",
    "English, wrapped":
        "On Mon, Jun 3, 2024 at 4:40 PM Ann Lee with a long name\n<ann@example.org> wrote:",
    "Finnish, wrapped": "ma 5. elok. 2024 klo 10.00 Ann Lee pitkä nimi\n(ann@example.org) kirjoitti:",
    "Russian, wrapped": "пн, 5 авг. 2024 г. в 10:00, Ann Lee\n<ann@example.org>:",
    "Turkish, wrapped": f"{A}, 5 Ağu 2024 Pzt, 10:00 tarihinde\nşunu yazdı:",
}  # fmt: skip
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
    "Outlook, bold": "*From:* Ann Lee\n*Sent:* Monday\n*To:* Bob\n*Subject:* x",
    "Outlook, rule": "________________________________\nFrom: Ann Lee\nSent: Monday\nTo: Bob\nSubject: x",
    "Outlook, blank lines": "From: Ann Lee\n\nSent: Monday\n\nTo: Bob\n\nSubject: x",
    "Outlook, many recipients": "From: Ann\nSent: Monday\nTo: Bob; Charles;\n Dora\nSubject: x",
    "headers of Usenet": "From: a@b.c\nPath: x\nLines: 9\nMessage-ID: <1>\nSubject: y\nDate: 3 Jun 93",
    "date first": "Date: Mon, 3 Jun 2024 16:40:00 +0200\nFrom: Ann\nTo: Bob\nSubject: x",
    "Outlook without a subject": "From: Ann Lee\nSent: Monday, June 3, 2024 4:40 PM\nTo: Bob",
    "rule on one side": "--Begin Forwarded Message",
    "double rule": "=== Forwarded message ===",
    "block of a form after a rule": "________________________________\nFrom: Ann\nTo: Bob\nDate: 3 May 10:00",
    "address in the next line": "From: Ann\n <ann@example.org>\nTo: Bob\nDate: 3 May",
    "Lotus Notes": "----- Forwarded by Ann Lee/Example on 03/06/2024 16:40 -----",
}  # fmt: skip


@pytest.mark.parametrize("introduction", INTRODUCTIONS.values(), ids=INTRODUCTIONS.keys())
def test_text_after_an_introduction_is_quoted(introduction: str) -> None:
    new, quoted = split_quoted_text(f"That suits me.\nBob\n\n{introduction}\n\nShall we meet?\nAnn")
    assert new == "That suits me.\nBob"
    assert quoted.endswith("Shall we meet?\nAnn")


FIELDS_OF_OUTLOOK = {
    "English": "From | Sent | To | Subject",
    "German": "Von | Gesendet | An | Betreff",
    "French": "De | Envoyé | À | Objet",
    "Spanish": "De | Enviado | Para | Asunto",
    "Catalan": "De | Enviat | Per a | Assumpte",
    "Portuguese": "De | Enviado | Para | Assunto",
    "Italian": "Da | Inviato | A | Oggetto",
    "Romanian": "De la | Trimis | Către | Subiect",
    "Dutch": "Van | Verzonden | Aan | Onderwerp",
    "Swedish": "Från | Skickat | Till | Ämne",
    "Danish": "Fra | Sendt | Til | Emne",
    "Norwegian": "Fra | Sendt | Til | Emne",
    "Icelandic": "Frá | Sent | Til | Efni",
    "Finnish": "Lähettäjä | Lähetetty | Vastaanottaja | Aihe",
    "Estonian": "Saatja | Saadetud | Adressaat | Teema",
    "Latvian": "No | Nosūtīts | Kam | Tēma",
    "Lithuanian": "Nuo | Išsiųsta | Kam | Tema",
    "Polish": "Od | Wysłano | Do | Temat",
    "Czech": "Od | Odesláno | Komu | Předmět",
    "Slovak": "Od | Odoslané | Komu | Predmet",
    "Slovenian": "Od | Poslano | Za | Zadeva",
    "Croatian": "Od | Poslano | Za | Predmet",
    "Serbian": "Од | Послато | За | Предмет",
    "Hungarian": "Feladó | Elküldve | Címzett | Tárgy",
    "Bulgarian": "От | Изпратено | До | Тема",
    "Russian": "От | Отправлено | Кому | Тема",
    "Ukrainian": "Від | Надіслано | Кому | Тема",
    "Greek": "Από | Στάλθηκε | Προς | Θέμα",
    "Turkish": "Kimden | Gönderildi | Kime | Konu",
    "Japanese": "差出人 | 送信日時 | 宛先 | 件名",
    "Chinese": "发件人 | 发送时间 | 收件人 | 主题",
    "Korean": "보낸 사람 | 보낸 날짜 | 받는 사람 | 제목",
    "Thai": "จาก | ส่ง | ถึง | เรื่อง",
    "Vietnamese": "Từ | Đã gửi | Đến | Chủ đề",
    "Indonesian": "Dari | Dikirim | Kepada | Perihal",
    "Malay": "Daripada | Dihantar | Kepada | Subjek",
    "Arabic": "من | تم الإرسال | إلى | الموضوع",
    "Hebrew": "מאת | נשלח | אל | נושא",
    "Persian": "از | ارسال شده | به | موضوع",
    "Hindi": "प्रेषक | भेजा गया | प्रति | विषय",
}  # fmt: skip


@pytest.mark.parametrize("fields", FIELDS_OF_OUTLOOK.values(), ids=FIELDS_OF_OUTLOOK.keys())
def test_a_header_block_of_outlook_is_known_in_every_language(fields: str) -> None:
    values = ("Ann Lee", "5.8.2024", "Bob", "x")
    for colon in (": ", "\uff1a"):
        block = "\n".join(f"{a}{colon}{b}" for a, b in zip(fields.split(" | "), values, strict=True))
        assert split_quoted_text(f"Thanks.\n\n{block}\n\nShall we?") == ("Thanks.", f"{block}\n\nShall we?")


TITLES = [title for words in LANGUAGES.values() for title in spellings(words.titles)]


@pytest.mark.parametrize("title", TITLES)
def test_a_title_between_rules_introduces_a_quotation(title: str) -> None:
    for line in (f"-------- {title.capitalize()} --------", f"-----{title}-----", f"{title.capitalize()}:"):
        assert split_quoted_text(f"Yes.\n{line}\nShall we?") == ("Yes.", f"{line}\nShall we?")


@pytest.mark.parametrize("attribution", ATTRIBUTIONS.values(), ids=ATTRIBUTIONS.keys())
def test_text_after_an_attribution_is_quoted(attribution: str) -> None:
    for quoted_text in ("\nShall we meet?\nAnn", "> Shall we meet?\n> Ann"):
        new, quoted = split_quoted_text(f"That suits me.\nBob\n\n{attribution}\n{quoted_text}")
        assert new == "That suits me.\nBob"
        assert quoted.endswith("Shall we meet?\nAnn")


def test_lines_before_an_attribution_are_new() -> None:
    new = "El paquete llegó roto.\nQuiero devolverlo."
    for attribution in ("El 3/6/2024 Ana escribió:", "> El 3/6/2024 Ana escribió:"):
        assert split_quoted_text(f"{new}\n{attribution}\n> Pedido.")[0] == new
    assert split_quoted_text(f"Listo.\nEl 3/6/2024 {A}\nde Madrid escribió:\nPedido.")[0] == "Listo."


def test_an_attribution_without_a_date_is_one_only_before_quotation_marks() -> None:
    assert split_quoted_text("Ann wrote:\n> Shall we?\nYes.") == ("Yes.", "Ann wrote:\nShall we?")
    assert split_quoted_text("In article <1993.10:00@b.c>, Ann writes:\n\n> a\nYes.")[0] == "Yes."
    assert split_quoted_text("Your colleague wrote:\nPay at once.")[1] == ""
    assert split_quoted_text("In article <1993.10:00@b.c>, a@b.c writes:\n|> a\nYes.")[1] == ""


def test_a_signature_counts_as_quoted_text() -> None:
    text = "Please refund.\n\n-- \nAnn\nSales, Berlin"
    assert split_quoted_text(text) == ("Please refund.", "Ann\nSales, Berlin")
    new, quoted = split_quoted_text("Yes.\n-- \nAnn\n> Shall we?\nand\n-- \nAnn")
    assert (new, quoted) == ("Yes.\nand", "Ann\nShall we?\nAnn")


@pytest.mark.parametrize(
    "postscript",
    [
        "PS: cancel my order", "P.S. Cancel my order", "ps cancel my order", "PPS - cancel it", "P.P.S.: x",
        "*PS:* cancel my order", "PS\nCancel my order", "PD: anule mi pedido", "N.B. Cancel it",
        "Υ.Γ. Ακύρωση", "נ.ב. נא לבטל", "追伸：返金", "Nachtrag: bitte stornieren", "PS: " + "a\n" * 30 + "b",
    ],
)  # fmt: skip
def test_a_postscript_after_a_signature_is_new_text(postscript: str) -> None:
    new, quoted = split_quoted_text(
        f"Please refund.\n\n-- \nAnn\nPS Logistics GmbH\nP.D. James\n\n{postscript}"
    )
    assert (new, quoted) == (f"Please refund.\n\n{postscript}", "Ann\nPS Logistics GmbH\nP.D. James")


@pytest.mark.parametrize(
    "text", ["-- \nOnly this text", "First part\n-- \n" + "A long second part\n" * 30, "a\n--\nb"]
)
def test_text_after_dashes_that_is_no_signature_stays(text: str) -> None:
    assert split_quoted_text(text)[1] == ""


ARMORED = """-----BEGIN PGP {kind}-----
Version: 1

iQEzBAEBCAAdFiEEabcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL
=abcd
-----END PGP {kind}-----
"""


def test_armor_is_removed_and_signed_text_stays() -> None:
    signature = ARMORED.format(kind="SIGNATURE")
    signed = f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nPlease refund\n- -- \nAnn\n{signature}"
    assert split_quoted_text(signed) == ("Please refund", "Ann")
    reply = "On 3/6/2024 Bob wrote:\n> " + signed.replace("\n", "\n> ")
    assert split_quoted_text(reply) == ("", "On 3/6/2024 Bob wrote:\nPlease refund\n- --\nAnn")
    for kind in ("MESSAGE", "PUBLIC KEY BLOCK"):
        assert split_quoted_text(f"See:\n{ARMORED.format(kind=kind)}Thanks") == ("See:\nThanks", "")
    certificate = "-----BEGIN CERTIFICATE-----\nMIIB/+=\n-----END CERTIFICATE-----"
    assert split_quoted_text(f"a\n{certificate}\nb") == ("a\nb", "")


def test_armor_without_an_end_does_not_hide_the_text_after_it() -> None:
    cut = ARMORED.format(kind="MESSAGE").partition("-----END")[0]
    assert split_quoted_text(f"a\n{cut}The rest of the text.\nb") == ("a\nThe rest of the text.\nb", "")
    assert split_quoted_text("a -----BEGIN PGP MESSAGE----- b\nc")[0] == "a -----BEGIN PGP MESSAGE----- b\nc"


@pytest.mark.parametrize(
    "text",
    [
        "I need the following:\n- a chair\n- a table",
        "On Monday the parcel arrived.\nIt was empty.",
        "Two questions:\nFirst: where is it?",
        "--\nBob\nSales",
        "Name: Bob\nOrder: 17\nMy question: when does it come?",
        "From: Berlin\nTo: Hamburg",
        "Von: Berlin\nAn: Hamburg\nDatum: 5.8.2024",
        "From: Berlin\nTo: Hamburg\nDate: 3 May 10:00\nThanks, it is urgent",
        "Date: 3 May 2024 10:00\nFrom: Berlin\nTo: Hamburg\nCc: ann@example.org\nThanks, it is urgent",
        "Von: Berlin\nAn: Hamburg\nBetreff: Umzug\nBitte melden Sie sich",
        "From: Berlin\nSent: 3 May\nTo: Hamburg\nThe parcel is lost",
        "--Begin forwarded messages at once\nThanks",
        "Hello\n________________________________\nOrder 4711 is broken, please refund",
        "Data: 5 maja\nproszę",
        "Do: Anna\nproszę",
        "From: Ann <ann@example.org>\nSubject: Invoice\n\nMessage:\nPlease refund",
        "Am 5. Mai schrieb ich Ihnen:\nBitte erstatten",
        "I called at 10:00 and your colleague wrote:\nPay at once.",
        "In 1926, the author (a pioneer) wrote in her memoirs\nabout this, the following:\nNothing.",
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
