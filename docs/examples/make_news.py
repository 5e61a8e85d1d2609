"""Write invented news with topics of a hierarchy, to try the tutorial on label trees without own articles.

python docs/examples/make_news.py news.jsonl tree.json
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

WORDS = {
    "business/companies": "profit merger shareholders board revenue chairman acquisition dividend factory",
    "business/markets": "shares index bonds traders yield currency investors exchange futures",
    "politics/elections": "ballot candidate voters poll campaign turnout coalition seat constituency",
    "politics/parliament": "bill amendment committee minister debate opposition vote session law",
    "science/medicine": "patients vaccine trial hospital symptoms therapy virus doctors dose",
    "science/space": "rocket orbit satellite telescope launch astronauts planet probe mission",
    "sports/football": "goal striker penalty league midfield coach referee stadium defender",
    "sports/tennis": "serve set racket baseline tournament match umpire grass seed",
}
"""The words of each topic."""

OF_ALL = "monday report people week spokesman city plan year country statement officials early"
"""Words of all topics."""


def article(rng: random.Random, topics: list[str]) -> str:
    """Return an invented article on the topics."""
    words = [rng.choice(WORDS[topics[k % len(topics)]].split()) for k in range(14)]
    words += rng.choices(OF_ALL.split(), k=16)
    rng.shuffle(words)
    return " ".join(words)


def main() -> None:
    """Write articles as JSON Lines, and the parent of each topic as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("articles", type=Path)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--number", type=int, default=400)
    options = parser.parse_args()
    rng = random.Random(0)  # noqa: S311 - the same articles each time
    with options.articles.open("w", encoding="utf-8") as stream:
        for number in range(options.number):
            topics = rng.sample(sorted(WORDS), k=2 if number % 4 == 0 else 1)
            record = {"id": f"news-{number}", "text": article(rng, topics), "labels": sorted(topics)}
            stream.write(json.dumps(record) + "\n")
    tree = {topic: topic.partition("/")[0] for topic in WORDS}
    options.tree.write_text(json.dumps(tree, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
