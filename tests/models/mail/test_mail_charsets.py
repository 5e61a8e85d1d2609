"""Text is decoded by its declared charset, whatever its label, or by the letters of its language."""

from __future__ import annotations

import pytest
from webencodings.labels import LABELS

from models.mail import read_message
from models.mail.charsets import decode, find_codec
from models.mail.detection import detect_codec
from models.mail.diagnostics import Diagnostics


def text(body: bytes, charset: str | None = None) -> str:
    field = f"; charset={charset}" if charset else ""
    return read_message(f"Subject: x\nContent-Type: text/plain{field}\n\n".encode() + body).new_text


def test_every_label_of_the_encoding_standard_is_known() -> None:
    not_charsets = {label for label, name in LABELS.items() if name in {"replacement", "x-user-defined"}}
    unknown = {label for label in LABELS if find_codec(label) is None}
    assert unknown < not_charsets
    assert unknown == {"replacement", "iso-2022-cn", "iso-2022-cn-ext", "x-user-defined"}


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("windows-874", "cp874"), ("TIS-620", "cp874"), ("x-sjis", "cp932"), ("windows-31j", "cp932"),
        ("iso-8859-8-i", "iso8859_8"), ("cn-big5", "big5hkscs"), ("ks_c_5601-1989", "cp949"),
        ("x-mac-cyrillic", "mac_cyrillic"), ("unicode-1-1-utf-8", "utf_8"), ("iso88591", "cp1252"),
        ("x-cp1251", "cp1251"), ("cp-850", "cp850"), ("win-1251", "cp1251"), ("utf8mb4", "utf_8"),
        ("x-iso-8859-2", "iso8859_2"), ("pt_BR.ISO8859-1", "cp1252"), ("utf-8;", "utf_8"),
        ("ansi_x3.4-1968", "ascii"), ("ansi_x3.4", "ascii"), ("x-mac-ce", "mac_latin2"),
        ("cswindows31j", "cp932"),
        ("hz-gb-2312", "hz"), ("iso-2022-kr", "iso2022_kr"), ("utf-16", "utf_16"), ("x-user-defined", None),
        ("windows-1252http-equiv", "cp1252"), ("iso-8859-123", None),
    ],
)  # fmt: skip
def test_labels_in_common_notations_are_known(label: str, codec: str | None) -> None:
    assert find_codec(label) == codec


@pytest.mark.parametrize(
    ("body", "charset", "expected"),
    [
        (b"\x1b(I6@\x1b(B \x1b$BJV6b\x1b(B", "iso-2022-jp", "ｶﾀ 返金"),
        (b"\x1b$B-!-jJV6b\x1b(B", "iso-2022-jp", "①㈱返金"),
        (b"\x1b$BJV6b\x1b(B", None, "返金"),
        (b"\x1b$BJV6b\x1b(B", "us-ascii", "返金"),
        (b"\x1b$BJV6b\x1b(B", "utf-8", "返金"),
        (b"\x1b$BJV6\nb\x1b(J", "iso-2022-jp", "返6\nb"),
        (b"\x1b$BJV6b\n-!\x1b(B\xb6", "iso-2022-jp", "返金\n-!ｶ"),
        (b"\x1b$(D\x30\x21\x1b(B\x1b$AVP\x1b(B\x1b$B-!", "iso-2022-jp", "丂中①"),
        (b"\x1b$(Q.!\x1b(B\x0e6@\x0f!", "iso-2022-jp", "俱ｶﾀ!"),
        (b"\xad\xa1\xca\xd6\xb6\xe2\x8e\xb6\x8f\xb0\xa1", "euc-jp", "①返金ｶ丂"),
        ("返金をお願いします".encode("euc_jp"), "iso-2022-jp", "返金をお願いします"),
        (b"\x1b[31mred", None, "[31mred"),
        (b"plain", "utf-16", "plain"),
        ("März".encode(), "utf-16le", "März"),
        ("März".encode("utf-16"), "utf-16", "März"),
        ("März 1".encode("utf-16-be"), "utf-16", "März 1"),
        ("März 1".encode("utf-16-le"), "utf-16", "März 1"),
        ("März".encode("utf-16"), None, "März"),
        ("Grüße".encode(), "iso-8859-1", "Grüße"),
        ("Grüße".encode("cp1252"), "iso-8859-1", "Grüße"),
        ("價格嫺".encode("big5hkscs"), "big5", "價格嫺"),
        (b"\xa3\xe1", "big5", "€"),
    ],
)
def test_text_is_decoded(body: bytes, charset: str | None, expected: str) -> None:
    assert text(body, charset) == expected


def test_a_subject_in_undeclared_iso_2022_jp_is_read() -> None:
    assert read_message(b"Subject: \x1b$BJV6b$N\x1b(B\n \x1b$B$*4j$$\x1b(B\n\nx").subject == "返金の お願い"


def test_html_states_its_charset_if_its_headers_do_not() -> None:
    def read(charset: str, content: bytes) -> str:
        html = f'<html><head><meta http-equiv=Content-Type content="text/html; charset={charset}">'
        return read_message(b"Content-Type: text/html\n\n" + html.encode() + b"<p>" + content).new_text

    assert read("koi8-r", "Да".encode("koi8_r")) == "Да"
    assert read("koi8-r", "Да".encode()) == "Да"


SENTENCES = {
    "cs cp1250 iso8859_2": "Dobrý den, obdržel jsem špatné zboží a chtěl bych ho vrátit.",
    "da cp1252 cp850": "Hej, jeg har ikke fået min ordre, og fakturaen er forkert.",
    "de cp1252 iso8859_15 cp850 mac_roman": "Guten Tag, die Rechnung für März ist falsch. Bitte prüfen.",
    "en cp1252 mac_roman": "I haven’t received my order – where is it?",
    "es cp1252 cp850": "No puedo entrar en mi cuenta, la contraseña no funciona.",
    "et cp1257 iso8859_15": "Tere, minu arve on vale ja palun raha tagastada võimalikult kiiresti.",
    "fi cp1252 iso8859_15": "Hyvää päivää, en ole saanut tilaustani ja lasku on väärä.",
    "fr cp1252 mac_roman": "Je n'arrive pas à me connecter à mon compte, le mot de passe a été refusé.",
    "hr cp1250 iso8859_2": "Pošiljka još nije stigla, možete li mi reći gdje je?",
    "hu cp1250 iso8859_2": "A csomag még nem érkezett meg, őszintén csalódott vagyok.",
    "is cp1252": "Góðan daginn, ég hef ekki fengið pöntunina mína.",
    "it cp1252": "Non riesco ad accedere perché la password non funziona più.",
    "lt cp1257": "Laba diena, sąskaita už gegužės mėnesį yra neteisinga.",
    "lv cp1257": "Labdien, rēķins par maiju ir nepareizs, lūdzu atmaksājiet naudu.",
    "pl cp1250 iso8859_2 cp852": "Proszę o informację, kiedy otrzymam zamówienie. Miało przyjść w środę.",
    "pt cp1252 iso8859_15 cp850": "Olá, não recebi a encomenda e a situação já dura três semanas.",
    "ro cp1250 iso8859_2": "Bună ziua, factura este greşită şi vă rog să îmi restituiţi banii.",
    "sk cp1250 iso8859_2": "Dobrý deň, dostal som nesprávny tovar a chcel by som ho vrátiť.",
    "sl cp1250 iso8859_2": "Naročeno blago še ni prišlo, kdaj bo pošiljka dostavljena?",
    "sv cp1252 cp850": "Hej, jag har inte fått min beställning och fakturan är fel.",
    "tr cp1254": "Merhaba, sipariş ettiğim ürün hâlâ gelmedi. Lütfen paramı iade edin.",
    "ru cp1251 koi8_r iso8859_5 cp866": "Не могу войти в свой аккаунт, пароль больше не работает.",
    "uk cp1251": "Не можу увійти до свого облікового запису.",
    "el cp1253": "Δεν μπορώ να συνδεθώ στον λογαριασμό μου.",
    "he cp1255": "אני לא מצליח להיכנס לחשבון שלי",
    "ar cp1256 iso8859_6": "لا أستطيع الدخول إلى حسابي",
    "th cp874": "กรุณาคืนเงิน",
    "ja cp932 euc_jp": "返金をお願いします",
    "zh gb18030": "我无法登录我的账户，密码不能用了。",
    "zh-Hant big5": "我無法登入我的帳戶，密碼不能用了。",
    "ko cp949": "비밀번호를 다시 보내 주세요.",
}


@pytest.mark.parametrize("languages", SENTENCES)
def test_text_without_a_correct_charset_is_read_by_the_letters_of_its_language(languages: str) -> None:
    sentence = SENTENCES[languages]
    for codec in languages.split()[1:]:
        content = sentence.encode(codec)
        for charset in (None, "utf-8", "us-ascii", "x-nowhere"):
            assert decode(content, charset, Diagnostics()) == sentence, codec


@pytest.mark.parametrize(
    ("codec", "words"),
    [
        ("koi8_r", "счет цена тест мой Юрий СЧЕТ ТЕСТ ТЕМА ЦЕНА ОТВЕТ ВОПРОС ЗАКАЗ ВОЗВРАТ"),
        ("cp1251", "счет сайт банк тест брак ЗАКАЗ ОПЛАТА АДРЕС"),
        ("cp1253", "θέμα λάθος γεια ερώτηση αλλαγή ΠΛΗΡΩΜΗ ΠΕΛΑΤΗΣ"),
        ("cp1255", "חשבונית תשלום כתובת עזרה"),
        ("cp1256", "طلب سعر عنوان مساعدة"),
    ],
)
def test_a_single_word_of_another_alphabet_is_read(codec: str, words: str) -> None:
    for word in words.split():
        assert text(word.encode(codec)) == word


def test_short_text_is_read_in_the_language_of_its_context() -> None:
    assert (
        detect_codec("łąka".encode("iso8859_2"), "Kiedy otrzymam nowe buty? Dzie dobry, prosze")
        == "iso8859_2"
    )


def test_a_few_invalid_bytes_do_not_change_the_charset_of_utf_8() -> None:
    body = "Größe, Maß und Länge für Überzüge: ".encode() + b"\xff" + "Tür".encode()
    assert text(body, "utf-8") == "Größe, Maß und Länge für Überzüge: \ufffdTür"
    assert text(body) == "Größe, Maß und Länge für Überzüge: \ufffdTür"


@pytest.mark.parametrize(
    ("subject", "body", "charset", "expected"),
    [
        ("Возврат".encode("koi8_r"), "Да".encode("koi8_r"), "koi8-r", "Возврат"),
        ("Возврат".encode(), "Да".encode("koi8_r"), "koi8-r", "Возврат"),
        (
            "Возврат денег".encode("cp1251"),
            "Не могу войти в свой аккаунт".encode("cp1251"),
            None,
            "Возврат денег",
        ),
        ("płatność".encode("cp1250"), "Kiedy otrzymam zamówienie?".encode("cp1250"), None, "płatność"),
        ("Rückgabe".encode("cp1252"), b"Please", None, "Rückgabe"),
        ("Rückgabe".encode("cp1252"), "März".encode(), "utf-8", "Rückgabe"),
    ],
)
def test_raw_8_bit_subjects_and_file_names_have_the_charset_of_the_text(
    subject: bytes, body: bytes, charset: str | None, expected: str
) -> None:
    raw = (
        b"Subject: " + subject + b"\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
        + (f"Content-Type: text/plain; charset={charset}\n" if charset else "").encode()
        + b"\n" + body + b"\n--b\nContent-Type: application/pdf; name=x\n"
        b"Content-Disposition: attachment; filename=\"" + subject + b".pdf\"\n\nx\n--b--\n"
    )  # fmt: skip
    mail = read_message(raw)
    assert mail.subject == expected
    assert mail.attachments == ((f"{expected}.pdf", "application/pdf"),)


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (b'filename="M\xe4rz (\\"1\\").pdf"', 'März ("1").pdf'),
        (b"filename=M\xe4rz 1.pdf", "März 1.pdf"),
        (b"filename*=windows-874''%A1%C3.pdf", "กร.pdf"),
        (b"filename*=iso-8859-2''p%B3at.pdf", "płat.pdf"),
        (b"filename*=''M%C3%A4rz.pdf", "März.pdf"),
        (b"filename*0*=utf-8''M%C3%A4; filename*1=rz.pdf", "März.pdf"),
    ],
)
def test_file_names_in_every_notation_are_decoded(parameter: bytes, expected: str) -> None:
    raw = b"Content-Type: application/pdf\nContent-Disposition: attachment; " + parameter + b"\n\nx"
    assert read_message(raw).attachments == ((expected, "application/pdf"),)
