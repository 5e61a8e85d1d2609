"""Frequent pairs of letters in the alphabets of mail that are not Latin.

The letters of another alphabet can be frequent in a short text by chance, but their order hardly can.
"""

from __future__ import annotations

from typing import Final


def _pairs(groups: str) -> frozenset[str]:
    """Return pairs, given groups of a letter and the letters that follow it."""
    return frozenset(group[0] + following for group in groups.split() for following in group[1:])


FREQUENT_PAIRS: Final[dict[str, frozenset[str]]] = {
    "Cyrillic": _pairs(
        "авдзклмнрстхя баелоруы ваеинорсхыі гадио даеилнор егдейклмнрстш жае завдн ивдезйклмнстхюя йст "
        "каиоу лаеикоуья маеио наеикнотыья обвгдежзйклмнпрстфчшщ паеилоруі раеиостуьі саеиклмнопртчыь "
        "тавеиоруь убджклмпсю фаио хно цеиі чаектё шклуь щеи ыйх ьг эт юр ятщ ёт єт ії"
    ),
    "Greek": _pairs(
        "άλρτ έλμρςτ ήθμςσ ίαενοσ αγδθικλμνπρστυφ βλο γαγιορ δαειο είικλμνξπρσυύ ημνςσ θαημο ιακοσ "
        "καεηου λάίαεηιλο μέίαεηιο νάίαειο οδιλμνπρςσυ παειλορό ράίαγεηιοό σαεηιοτφωόύ τήίαεηιοωό υνστ "
        "φο χαεορ ωνρσ όλμςστ ύθ ώρς"
    ),
    "Hebrew": _pairs(
        "אילת בערת דה הבדוזחימעת ואבדלםןרת זמר חזיש יהוםרת כיסת לאהוי מהוחיסש נוי סף עהזילר רי שאבהיכל תויש"
    ),
    "Arabic": _pairs(
        "ؤا ابترسعلن باي تامو جاع حبمن دةف راةجقي سؤاع شحك طل عدرلن فاعي قم كرلم لابةتكمىي ماحرسشنو ناوي "
        "هال وارلن يةمنو"
    ),
}
"""The pairs by alphabet, in lower case."""
