"""Text features beside scikit-learn's CountVectorizer, both given the same tokens function, in one run.

    python benchmarks/analyzer.py [--corpus reuters21578|20newsgroups] [--repeat N]

The tokens function takes a document to the list of its tokens: split, drop, stem. CountVectorizer calls it
as its ``analyzer``; TextFeatures does the same work its own way, each distinct word once. "Memoised" gives
CountVectorizer a tokens function that remembers what became of each word, which it does not do by itself.
Every line checks first that both count the same terms as often. Figures are seconds of processor time, the
best of the repeats, from texts to sparse counts with a sorted vocabulary.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from models.features import TextFeatures, TextFeaturesParameters
from models.text import AnalyzerParameters
from models.text.analyzer import WordAnalysis
from models.text.tokens import words

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
WAYS = {
    "lower case": AnalyzerParameters(),
    "lower case, no numbers, stop words": AnalyzerParameters(drop_numbers=True, stop_words="english"),
    "the same, Porter stems": AnalyzerParameters(drop_numbers=True, stop_words="english", stemmer="porter"),
}


def tokens_function(parameters: AnalyzerParameters, *, memoised: bool) -> Callable[[str], list[str]]:
    """From a document to its tokens."""
    analysis: Callable[[str], str | None] = WordAnalysis(parameters)
    if memoised:
        analysis = cache(analysis)
    lowercase = parameters.lowercase

    def tokens(text: str) -> list[str]:
        return [token for word in words(text, lowercase=lowercase) if (token := analysis(word)) is not None]

    def plain_tokens(text: str) -> list[str]:
        return words(text, lowercase=lowercase)

    return plain_tokens if parameters == AnalyzerParameters() else tokens


def count(parameters: AnalyzerParameters, texts: list[str]) -> tuple[list[str], Any]:
    """Terms and counts by TextFeatures."""
    features = TextFeatures(TextFeaturesParameters(kind="text", weighting="tf", analyzer=parameters))
    no_labels = csr_array(np.zeros((len(texts), 1), dtype=np.int8))
    matrix = features.fit_transform([texts], no_labels)
    return features.names_, matrix


def count_with_sklearn(tokens: Callable[[str], list[str]], texts: list[str]) -> tuple[list[str], Any]:
    """Terms and counts by CountVectorizer."""
    vectorizer = CountVectorizer(analyzer=tokens)
    matrix = vectorizer.fit_transform(texts)
    return vectorizer.get_feature_names_out().tolist(), matrix


def best_time(work: Callable[[], object], repeat: int) -> float:
    """The shortest of some runs, in seconds of processor time."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def compare(corpus: str, repeat: int) -> None:
    """Prints a line for each way of analysing a corpus."""
    with gzip.open(DATA / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts: list[str] = [json.loads(line)["text"] for line in lines]
    print(f"\n{corpus}: {len(texts)} documents, {sum(map(len, texts)) / 1e6:.1f} million characters")
    print(f"{'analyzer':<38}{'terms':>9}{'ours':>9}{'sklearn':>10}{'ratio':>8}{'memoised':>11}{'ratio':>8}")
    for name, parameters in WAYS.items():
        own = tokens_function(parameters, memoised=False)
        memoised = tokens_function(parameters, memoised=True)
        names, counts = count(parameters, texts)
        other_names, other_counts = count_with_sklearn(memoised, texts)
        assert names == other_names
        assert abs(counts - csr_array(other_counts)).nnz == 0

        ours = best_time(partial(count, parameters, texts), repeat)
        once = 1 if parameters.stemmer != "none" else repeat  # stemming every occurrence takes a minute
        theirs = best_time(partial(count_with_sklearn, own, texts), once)
        line = f"{name:<38}{len(names):>9}{ours:>8.2f}s{theirs:>9.2f}s{theirs / ours:>8.1f}"
        if parameters != AnalyzerParameters():
            remembering = min(
                best_time(partial(count_with_sklearn, tokens_function(parameters, memoised=True), texts), 1)
                for _ in range(repeat)
            )
            line += f"{remembering:>10.2f}s{remembering / ours:>8.1f}"
        print(line, flush=True)


def main() -> None:
    """Runs the comparison on the corpora that are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", choices=["reuters21578", "20newsgroups"], action="append")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    for corpus in arguments.corpus or ["reuters21578", "20newsgroups"]:
        compare(corpus, arguments.repeat)


if __name__ == "__main__":
    main()
