"""Detects the charset of 8-bit text by the letters of its language.

In a language that is written with the Latin alphabet, most letters are ASCII in every charset. They show the
language (py3langid), and a charset is plausible if it reads the other bytes as letters of that language, in
the right case, or as common punctuation. Text in other alphabets has few ASCII letters; there, the frequent
letters and pairs of letters decide. Anything else is left to charset_normalizer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from models.extras import require
from models.mail.language import identifier
from models.mail.letter_pairs import FREQUENT_PAIRS

try:
    import charset_normalizer
except ModuleNotFoundError:
    charset_normalizer = None  # type: ignore[assignment]

_WESTERN: Final = ("cp1252", "iso8859_15", "mac_roman", "cp850")
_CENTRAL: Final = ("cp1250", "iso8859_2", "cp852")
_TURKISH: Final = ("cp1254", "cp857")
_BALTIC: Final = ("cp1257", "iso8859_13", "iso8859_4", "cp775")
_ROMANIAN: Final = (*_CENTRAL, "iso8859_16")
_CYRILLIC: Final = ("cp1251", "koi8_r", "koi8_u", "iso8859_5", "cp866", "mac_cyrillic")

# fmt: off
_LATIN: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "bs": ("čćđšž", _CENTRAL), "ca": ("àçéèíïóòúü", _WESTERN), "cs": ("áčďéěíňóřšťúůýž", _CENTRAL),
    "da": ("æøåéü", _WESTERN), "de": ("äöüßé", _WESTERN), "en": ("éèêïñçàö", _WESTERN),
    "es": ("áéíñóúü", _WESTERN), "et": ("äöõüšž", (*_BALTIC, "iso8859_15", "cp1252")),
    "eu": ("ñçü", _WESTERN), "fi": ("äöåšž", _WESTERN), "fr": ("àâæçéèêëîïôœùûüÿ", _WESTERN),
    "ga": ("áéíóú", _WESTERN), "gl": ("áéíóúñü", _WESTERN), "hr": ("čćđšž", _CENTRAL),
    "hu": ("áéíóöőúüű", _CENTRAL), "is": ("áéíóúýþæöð", _WESTERN), "it": ("àèéìòùî", _WESTERN),
    "lt": ("ąčęėįšųūž", _BALTIC), "lv": ("āčēģīķļņšūž", _BALTIC), "nb": ("æøåéòô", _WESTERN),
    "nl": ("éëïóöüèáí", _WESTERN), "nn": ("æøåéòô", _WESTERN), "no": ("æøåéòô", _WESTERN),
    "pl": ("ąćęłńóśźż", _CENTRAL), "pt": ("áâãàçéêíóôõúü", _WESTERN), "ro": ("ăâîşţșț", _ROMANIAN),
    "sk": ("áäčďéíĺľňóôŕšťúýž", _CENTRAL), "sl": ("čšž", _CENTRAL), "sq": ("çë", (*_WESTERN, *_CENTRAL)),
    "sv": ("åäöé", _WESTERN), "tr": ("çğıöşüâîİ", _TURKISH),
}
"""The letters outside ASCII of each language, and its charsets, of which the first is preferred."""
_LATIN_LANGUAGES: Final = frozenset(_LATIN)

_OTHERS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "Cyrillic": ("оеаинтсрвлкмдпуяыізі", "ьгбчйхжшюцщэфъёєїґјљњћђџѕќѓў", _CYRILLIC),
    "Greek": ("αοιετνςσηρπκμλ", "άέήίόύώθγδυωχφβξζψϊϋΐΰ", ("cp1253", "iso8859_7", "cp737")),
    "Hebrew": ("יולאהמרבתשנ", "גדזחטךכםןסעףפץצק", ("cp1255", "iso8859_8", "cp862")),
    "Arabic": ("اليمنترو", "بةثجحخدذزسشصضطظعغفقكهىءأإآؤئ،؟؛", ("cp1256", "iso8859_6")),
    "Thai": ("านรอกเงมย่วลดทสต้", "ะัีใค็ไปหชแจพขิบูถืคำผซุธึศโฉณภฎฏฐฑฒญฆฌฝฟษฬฮๆฯ์๊๋ำ", ("cp874",)),
}
"""The frequent and the other letters of each alphabet, and its charsets."""

_FREQUENT_HAN: Final = {
    "gb18030": "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对"
               "可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手用主行方又如前所本见经头面公同三"
               "已老从动两长知样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话者向情部正名定问力机"
               "给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军"
               "产入先山五太水万市员度数您单收请款货退票订购账号码登录密确快尽帮",
    "big5hkscs": "的一是不了在人有我他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家"
                 "學對可她裡後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手用主行方又如前所本見經"
                 "頭面公同三已老從動兩長知樣現分將外但身些與高意進把法此實回二理美點月明其種聲全工己話者向"
                 "情部正名定問力機給等幾很業最間新什打便位因重被走電四第門相次東政海口使教西再平真聽世氣信"
                 "北少關並內加化由卻代軍產入先山五太水萬市員度數您單收請款貨退票訂購帳號碼登錄密確快盡幫",
}
# fmt: on
_GREEK_ACCENTS: Final = frozenset("άέήίόύώΐΰΆΈΉΊΌΎΏ")
"""One of them is in most words that are not in capitals."""
_EAST_ASIAN: Final = ("cp932", "euc_jp", "cp949", "gb18030", "big5hkscs")

_PUNCTUATION: Final = frozenset("\xa0«»„“”‚‘’‹›–—…•€£§°©®™¿¡ºª½¼¾²³±×·")
_TYPOGRAPHIC: Final = frozenset("\xa0«»„“”‘’–—…€")
_NOT_AFTER_LETTERS: Final = frozenset("±¼½¾¿¡§£³¹")
_INSIDE_WORDS: Final = frozenset("’‘´·\xad")

_SAMPLE_BYTES: Final = 2048
_SAMPLE_HIGH_BYTES: Final = 300
_CONTEXT_CHARS: Final = 1000
_MIN_SCORE: Final = 0.2
"""Average score of a byte outside ASCII, of at most 1, below which the result is no better than a guess."""
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - set(b"\t\n\r\x1b"))
_MAX_CONTROL_RATE: Final = 20
"""Content with more than one control character in this many bytes is not text."""
_MIN_FOREIGN_BYTES: Final = 32
_CERTAIN_SCORE: Final = 0.7
_CERTAIN_BYTES: Final = 60
_LANGUAGE_WEIGHT: Final = 2.0
_CERTAIN_LETTERS: Final = 24
"""Number of ASCII letters with which the language has its full weight."""
_NOT_WESTERN: Final = 1.0
"""Deducted for a language that is not Western European: most mail without a charset is."""
_MIN_PROBABILITY: Final = 0.002
_SECOND_CHOICE: Final = 0.3
"""Deducted for each charset before this one in the order of preference."""
_NOT_ASCII: Final = re.compile(rb"[\x80-\xff]")
_TAG: Final = re.compile(rb"<[a-zA-Z/!][^<>]*>")
_ASCII_LETTER: Final = re.compile(rb"[A-Za-z]")


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a charset reads the bytes outside ASCII of a sample.

    Attributes:
        letters: number of each letter.
        penalty: sum of penalties for letters in the wrong case and for characters that are no letters, less
            a bonus for typographic punctuation.
    """

    letters: dict[str, int]
    penalty: float


def detect_codec(content: bytes, context: str = "") -> str:
    """Return the Python codec that most probably reads 8-bit text that is not UTF-8.

    Args:
        content: text with bytes outside ASCII.
        context: more text in the same language, of which the ASCII letters are read.

    >>> detect_codec("Größe".encode("cp1252")), detect_codec("książka".encode("iso8859_2"))
    ('cp1252', 'iso8859_2')
    """
    sample = _sample(content)
    if (len(sample) - len(sample.translate(None, _CONTROLS))) * _MAX_CONTROL_RATE > len(sample):
        return "cp1252"  # not text
    n_high = len(_NOT_ASCII.findall(sample))
    n_ascii = len(_ASCII_LETTER.findall(sample))
    candidates = [_best_east_asian(sample)]
    if candidates[0][0] > _CERTAIN_SCORE and n_high > _CERTAIN_BYTES:
        return candidates[0][1]
    if n_high <= 2 * n_ascii:
        candidates.append(_best_latin(sample, context, n_high))
    if 2 * n_high > n_ascii:
        candidates.append(_best_other(sample, n_high))
    score, codec = max(candidates)
    if score >= _MIN_SCORE:
        return codec
    if n_high < _MIN_FOREIGN_BYTES:
        return "cp1252"
    require(charset_normalizer, "charset_normalizer", "detecting the charset of mail")
    best = charset_normalizer.from_bytes(content[: 2 * _SAMPLE_BYTES]).best()
    return best.encoding if best is not None else "cp1252"


def _sample(content: bytes) -> bytes:
    """Return the first lines with bytes outside ASCII, without tags of HTML."""
    lines: list[bytes] = []
    size = 0
    for line in content.splitlines(keepends=True):
        if not line.isascii() or len(content) <= _SAMPLE_BYTES:
            lines.append(line)
            size += len(line)
            if size > _SAMPLE_BYTES:
                break
    sample = _TAG.sub(b" ", b"".join(lines)[:_SAMPLE_BYTES])
    following = next(islice(_NOT_ASCII.finditer(sample), _SAMPLE_HIGH_BYTES, None), None)
    return sample[: following.start()] if following else sample


def _best_latin(sample: bytes, context: str, n_high: int) -> tuple[float, str]:
    ascii_text = _NOT_ASCII.sub(b" ", sample).decode("ascii") + "\n" + context
    ascii_text = ascii_text[:_CONTEXT_CHARS]
    probabilities = dict(identifier(_LATIN_LANGUAGES).rank(ascii_text))
    weight = _LANGUAGE_WEIGHT * min(1.0, sum(map(str.isalpha, ascii_text)) / _CERTAIN_LETTERS)
    readings = {
        codec: _read(sample, codec) for codec in {codec for _, codecs in _LATIN.values() for codec in codecs}
    }
    best = (-math.inf, 0.0, "cp1252")
    for language, (letters, codecs) in _LATIN.items():
        likelihood = weight * math.log(max(probabilities.get(language, 0.0), _MIN_PROBABILITY))
        if codecs is not _WESTERN:
            likelihood -= _NOT_WESTERN
        alphabet = {*letters, *letters.upper()}
        for place, codec in enumerate(codecs):
            reading = readings[codec]
            score = -reading.penalty
            for letter, count in reading.letters.items():
                score += count * (1.0 if letter in alphabet else -2.0 if letter in "éèöüä" else -4.0)
            best = max(best, (score + likelihood - _SECOND_CHOICE * place, score, codec))
    return best[1] / max(1, n_high), best[2]


def _best_other(sample: bytes, n_high: int) -> tuple[float, str]:
    best = (-math.inf, "cp1252")
    for alphabet, (frequent, rare, codecs) in _OTHERS.items():
        frequent_pairs = FREQUENT_PAIRS.get(alphabet, frozenset())
        frequent_letters, rare_letters = {*frequent, *frequent.upper()}, {*rare, *rare.upper()}
        for place, codec in enumerate(codecs):
            reading = _read(sample, codec)
            score = -0.02 * place - reading.penalty
            for letter, count in reading.letters.items():
                weight = 1.0 if letter in frequent_letters else 0.3 if letter in rare_letters else -4.0
                score += count * (weight - 0.2 * letter.isupper())
            if alphabet == "Greek" and _GREEK_ACCENTS.isdisjoint(reading.letters):
                score -= 0.3 * sum(n for letter, n in reading.letters.items() if letter.islower())
            score += _n_frequent_pairs(sample.decode(codec, "replace"), frequent_pairs)
            best = max(best, (score, codec))
    return best[0] / max(1, n_high), best[1]


def _best_east_asian(sample: bytes) -> tuple[float, str]:
    best = (-math.inf, "cp1252")
    for codec in _EAST_ASIAN:
        # Of the 8,822 syllables that cp949 adds to EUC-KR, hardly any is in use.
        text = sample.decode("euc_kr" if codec == "cp949" else codec, "replace").rstrip("\ufffd")
        characters = [character for character in text if not character.isascii()]
        score = sum(_east_asian_weight(character, codec) for character in characters)
        if len(characters) > 1:
            best = max(best, (score / len(characters), codec))
    return best


def _east_asian_weight(character: str, codec: str) -> float:
    frequent = _FREQUENT_HAN.get(codec)
    if "\u3041" <= character <= "\u30fe":
        return 1.0 if frequent is None and codec != "cp949" else -1.0
    if "\uac00" <= character <= "\ud7a3":
        return 1.0 if codec == "cp949" else -2.0
    if "\u4e00" <= character <= "\u9fff":
        return 0.2 if frequent is None else 1.0 if character in frequent else -0.1
    return 0.5 if character in "\u3000、。，！？：；（）「」・ー" else -3.0


def _read(sample: bytes, codec: str) -> _Reading:
    text = f" {sample.decode(codec, 'replace')} "
    letters: Counter[str] = Counter()
    penalty = 0.0
    for match in _HIGH_CHARACTER.finditer(text):
        character = match[0]
        before, after = text[match.start() - 1], text[match.end()]
        if character in _PUNCTUATION or character in _INSIDE_WORDS:
            if before.isalpha() and (
                (after.isalpha() and character not in _INSIDE_WORDS) or character in _NOT_AFTER_LETTERS
            ):
                penalty += 4.0
            elif character in _TYPOGRAPHIC:
                penalty -= 0.3
        elif character.isalpha() or "\u0e31" <= character <= "\u0e4e":
            letters[character] += 1
            if character.isupper() and before.islower():
                penalty += 4.0
            elif character.islower() and before.isupper() and after.isupper():
                penalty += 2.0
            if before.isascii() and before.isalpha() and character > "\u024f":
                penalty += 3.0
        else:
            penalty += 5.0
    return _Reading(dict(letters), penalty)


def _n_frequent_pairs(text: str, frequent: frozenset[str]) -> int:
    """Return how many pairs of adjacent letters are frequent ones. Each scores as a letter does."""
    return sum(first + second in frequent for first, second in pairwise(text.lower()))


_HIGH_CHARACTER: Final = re.compile(r"[^\x00-\x7f]")
