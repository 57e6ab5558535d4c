"""The text that the demo's language model is trained on: old books that Debian packages carry, made into paragraphs.

Packages are fetched with `apt-get download` and unpacked with `dpkg-deb`: neither needs root."""

from __future__ import annotations

import re
import struct
import subprocess
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = 20  # paragraphs that stay together when some are held out
HELD_OUT = 40  # one block in so many is kept from training

CURLY = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "—": "--", "–": "-", "_": None})
# Headings and stage directions tell nothing; a shout in quotes does.
HEADING = re.compile(r'(?i:by( jane austen)?|(chapter|volume|preface|finis|\(?end of)\b.{0,60})|[^a-z"]+')
# Words of their time that a demo must not say.
SLUR = re.compile(r"nigger|negro|injun|squaw|half-breed|\bjews?\b", re.IGNORECASE)


@dataclass(frozen=True)
class Book:
    """One file of a package: how it is read, and the words that its story begins and ends with."""

    package: str
    path: str
    read: Callable[[bytes], str]
    begins: str = ""
    ends: str = ""


def plain(content: bytes) -> str:
    return content.decode("utf-8-sig").replace("\r\n", "\n")


def r_strings(content: bytes) -> str:
    """The character vectors of an R package's lazy-load database, each line of text being one string.

    The file is a row of chunks: a big-endian length, then a zlib stream of R's XDR serialization, version 3."""
    lines = []
    while content:
        stream = zlib.decompressobj()
        data = stream.decompress(content[4:])
        content = stream.unused_data
        (encoding_size,) = struct.unpack_from(">i", data, 14)
        at = 18 + encoding_size
        kind, count = struct.unpack_from(">ii", data, at)
        if kind & 0xFF != 16:
            raise ValueError(f"R object of kind {kind & 0xFF} where a character vector (16) was expected")
        at += 8
        for _ in range(count):
            _, size = struct.unpack_from(">ii", data, at)
            lines.append(data[at + 8 : at + 8 + size].decode())
            at += 8 + size
        lines.append("")
    return "\n".join(lines)


GO = "usr/share/gocode/src/github.com/"
BOOKS = (
    # Jane Austen: Emma, Mansfield Park, Northanger Abbey, Persuasion, Pride and Prejudice, Sense and Sensibility.
    Book("r-cran-janeaustenr", "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb", r_strings),
    # Arthur Conan Doyle: The Adventures of Sherlock Holmes.
    Book(
        "golang-github-pierrec-lz4-dev",
        GO + "pierrec/lz4/testdata/pg1661.txt",
        plain,
        "To Sherlock Holmes she is always",
        "End of the Project Gutenberg EBook",
    ),
    # Mark Twain: The Adventures of Tom Sawyer.
    Book("golang-github-pierrec-lz4-dev", GO + "pierrec/lz4/testdata/Mark.Twain-Tom.Sawyer.txt", plain, '"TOM!"'),
    # Herman Melville: Moby Dick.
    Book(
        "golang-github-colinmarc-hdfs-dev",
        GO + "colinmarc/hdfs/testdata/mobydick.txt",
        plain,
        "Call me Ishmael.",
        "End of Project Gutenberg",
    ),
)


def unpack(package: str, folder: Path) -> Path:
    """The folder with the files of a Debian package, fetched on the first call."""
    target = folder / package
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=folder, check=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, target], check=True)
        archive.unlink()
    return target


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a book in ASCII, each on one line, without headings and slurs."""
    for piece in re.split(r"\n\s*\n", text):
        line = re.sub(r"\s+", " ", piece.translate(CURLY)).strip()
        line = unicodedata.normalize("NFKD", line).encode("ascii", "ignore").decode()
        if line and not HEADING.fullmatch(line) and not SLUR.search(line):
            yield line


def read_book(book: Book, folder: Path) -> list[str]:
    text = book.read((unpack(book.package, folder) / book.path).read_bytes())
    begin = text.index(book.begins)
    end = text.index(book.ends, begin) if book.ends else len(text)
    return list(paragraphs(text[begin:end]))


def split(folder: Path) -> tuple[list[str], list[str]]:
    """The books for training and what is held out of them, each a text of paragraphs."""
    train, held_out = [], []
    for book in BOOKS:
        kept = []
        lines = read_book(book, folder)
        for number, start in enumerate(range(0, len(lines), BLOCK)):
            text = "\n".join(lines[start : start + BLOCK]) + "\n"
            (held_out if number % HELD_OUT == HELD_OUT // 2 else kept).append(text)
        train.append("".join(kept))
    return train, held_out
