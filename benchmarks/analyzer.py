"""Compare the speed of text features with scikit-learn's CountVectorizer.

    python benchmarks/analyzer.py [--corpus reuters21578|20newsgroups] [--repeat N]

Both use the same analysis of words: split, drop, stem. CountVectorizer calls a tokens function as its
``analyzer``; TextFeatures analyzes each distinct word once. "Memoised" means that the tokens function of
CountVectorizer caches the result for each word. The script first checks that both return the same counts.
Figures are CPU seconds from texts to sparse counts with a sorted vocabulary, the minimum of the repeats.
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
ANALYZERS = {
    "lower case": AnalyzerParameters(),
    "lower case, no numbers, stop words": AnalyzerParameters(drop_numbers=True, stop_words="english"),
    "the same, Porter stems": AnalyzerParameters(drop_numbers=True, stop_words="english", stemmer="porter"),
}


def tokens_function(parameters: AnalyzerParameters, *, memoised: bool) -> Callable[[str], list[str]]:
    """Return a function from a document to its tokens."""
    analysis: Callable[[str], str | None] = WordAnalysis(parameters)
    if memoised:
        analysis = cache(analysis)
    rules = parameters.token_rules(None)

    def tokens(text: str) -> list[str]:
        return [token for word in words(text, rules) if (token := analysis(word)) is not None]

    def plain_tokens(text: str) -> list[str]:
        return words(text, rules)

    return plain_tokens if parameters == AnalyzerParameters() else tokens


def count(parameters: AnalyzerParameters, texts: list[str]) -> tuple[list[str], Any]:
    """Return terms and counts computed with TextFeatures."""
    features = TextFeatures(TextFeaturesParameters(kind="text", weighting="tf", analyzer=parameters))
    no_labels = csr_array(np.zeros((len(texts), 1), dtype=np.int8))
    matrix = features.fit_transform([texts], no_labels)
    return features.names_, matrix


def count_with_sklearn(tokens: Callable[[str], list[str]], texts: list[str]) -> tuple[list[str], Any]:
    """Return terms and counts computed with CountVectorizer."""
    vectorizer = CountVectorizer(analyzer=tokens)
    matrix = vectorizer.fit_transform(texts)
    return vectorizer.get_feature_names_out().tolist(), matrix


def best_time(work: Callable[[], object], repeat: int) -> float:
    """Return the minimum CPU time of several runs, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def compare(corpus: str, repeat: int) -> None:
    """Print a line for each analyzer on a corpus."""
    with gzip.open(DATA / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts: list[str] = [json.loads(line)["text"] for line in lines]
    print(f"\n{corpus}: {len(texts)} documents, {sum(map(len, texts)) / 1e6:.1f} million characters")
    print(f"{'analyzer':<38}{'terms':>9}{'ours':>9}{'sklearn':>10}{'ratio':>8}{'memoised':>11}{'ratio':>8}")
    for name, parameters in ANALYZERS.items():
        tokens = tokens_function(parameters, memoised=False)
        memoised = tokens_function(parameters, memoised=True)
        names, counts = count(parameters, texts)
        other_names, other_counts = count_with_sklearn(memoised, texts)
        assert names == other_names
        assert abs(counts - csr_array(other_counts)).nnz == 0

        ours = best_time(partial(count, parameters, texts), repeat)
        once = 1 if parameters.stemmer != "none" else repeat  # stemming each occurrence takes a minute
        theirs = best_time(partial(count_with_sklearn, tokens, texts), once)
        line = f"{name:<38}{len(names):>9}{ours:>8.2f}s{theirs:>9.2f}s{theirs / ours:>8.1f}"
        if parameters != AnalyzerParameters():
            cached = min(
                best_time(partial(count_with_sklearn, tokens_function(parameters, memoised=True), texts), 1)
                for _ in range(repeat)
            )
            line += f"{cached:>10.2f}s{cached / ours:>8.1f}"
        print(line, flush=True)


def main() -> None:
    """Run the comparison on the selected corpora."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", choices=["reuters21578", "20newsgroups"], action="append")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    for corpus in arguments.corpus or ["reuters21578", "20newsgroups"]:
        compare(corpus, arguments.repeat)


if __name__ == "__main__":
    main()
