"""What the corpora are."""

from __future__ import annotations

ABOUT = {
    "reuters": "news",
    "20newsgroups": "newsgroups without headers",
    "lists": "e-mail of mailing lists",
    "rcv1": "news, as names of features",
    "ohsumed": "medical abstracts, as words",
    "tmc2007-500": "reports of flights, as words",
    "medical": "clinical notes, as words",
    "yeast": "genes, as measurements",
    "bibtex": "references, as words",
    "scene": "pictures, as measurements",
    "emotions": "music, as measurements",
    "genbase": "proteins, as motifs",
    "imclef07a": "X-ray images, as measurements",
    "cellcycle": "genes, as measurements",
    "speakers": "lines of dialogues, and who speaks",
    "tweets": "short texts, their author and program",
    "opinions": "Slovenian comments, their topic and opinion",
    "demo": "generated e-mail in three languages",
    "mails": "newsgroups as e-mail with headers",
    "digits": "images of digits, as pixels",
}
"""The content of each corpus."""

NO_CONSTANT = ("speakers", "tweets", "opinions", "demo", "mails", "digits")
"""The corpora on which no constant of Covey was chosen. ``mails`` has the documents of ``20newsgroups``."""
