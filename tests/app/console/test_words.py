"""One wording for a measure, a percentage and a message on all pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import app
from app.pages.measures import MEASURES, measure_title
from app.pages.rendering import percent
from models.measures.directions import DIRECTIONS

APP = Path(app.__file__).parent
TEMPLATES = sorted(APP.rglob("templates/**/*.html"))


def test_every_measure_has_a_title_and_an_explanation() -> None:
    assert set(MEASURES) == set(DIRECTIONS)
    titles = [wording.title for wording in MEASURES.values()]
    assert len(set(titles)) == len(titles)
    for name, wording in MEASURES.items():
        assert "_" not in wording.title, name
        assert re.fullmatch(r"[A-Z].+\.", wording.help), name
    assert measure_title("covering_loss.exact") == "Covering loss, exact"
    assert measure_title("held_out_f1_micro") == "Overall quality (F1), held out"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_name_no_measure_and_format_no_percentage_themselves(path: Path) -> None:
    text = path.read_text()
    shown = re.sub(r"\{[{%#].*?[}%#]\}|<code>.*?</code>", "", text, flags=re.DOTALL)
    for name in DIRECTIONS:
        assert "_" not in name or name not in shown, f"{name} is the name of the API"
    assert not re.search(r"F1, micro|:\.\d%|%%", text)


def test_only_exact_values_are_0_or_100_percent() -> None:
    for value in (1e-12, 0.0004, 0.9996, 1 - 1e-12):
        assert percent(value) in {"< 0.1 %", "> 99.9 %"}
    assert (percent(0), percent(1), percent(0.9994)) == ("0 %", "100 %", "99.9 %")
