"""Goal: the source, the docs and what operators read use the field's words (CONTRIBUTING.md, "Words").

Method: three checks of the files that git tracks below src, sim and docs, of README.md and of CONTRIBUTING.md:

  retired words   no file has a word of tests/lib/retired_words.txt; a failure says what to write instead
  openings        no line of a comment in C begins with "Who", "What", "Nobody" and the like instead of the subject
  glossary        every term of docs/GLOSSARY.md is in use, and its source is there

The check of retired words also reads the help texts, from the program, because it may compose text that no file
contains. Short texts with planted mistakes show that the first two checks can fail.
"""
import fnmatch
import os
import re
import subprocess
import unittest

from servers import heatsink_path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = "tests/lib/retired_words.txt"
FOLDERS = ("src", "sim", "docs", "README.md", "CONTRIBUTING.md")
SUBCOMMANDS = ("serve", "top", "storm", "check", "repair", "sim")
OPENING = re.compile(r"(?:/\*|^[ \t]*\*)[ \t]*(Who|What|Whoever|Whom|Nobody|Somebody|Those that|Those who|Whether what)\b",
                     re.M)

RUN_ONCE = True


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def rows():
    """(pattern, replacement, globs of files where the word is an ordinary one)"""
    for line in read(LIST).splitlines():
        if line and not line.startswith("#"):
            pattern, replacement, *globs = line.split("\t")
            yield re.compile(pattern, re.I), replacement, globs[0].split() if globs else []


def tracked():
    """The files to read: those of git, or of the folders where this is no checkout."""
    listed = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split() or [
        os.path.relpath(os.path.join(folder, file), ROOT)
        for top in FOLDERS for folder, _, files in os.walk(os.path.join(ROOT, top)) for file in files]
    return [name for name in names if os.path.exists(os.path.join(ROOT, name)) and not name.endswith((".svg", ".png"))]


def retired(name, text):
    """One line for each retired word in a text."""
    found = []
    for pattern, replacement, globs in rows():
        if any(fnmatch.fnmatch(name, glob) for glob in globs):
            continue
        found += [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: '{match.group(0)}', write: {replacement}"
                  for match in pattern.finditer(text)]
    return found


def help_text(*words):
    done = subprocess.run([heatsink_path(), *words], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


class List(unittest.TestCase):
    def test_every_row_has_a_pattern_and_a_replacement(self):
        for line in read(LIST).splitlines():
            if line and not line.startswith("#"):
                self.assertIn(len(line.split("\t")), (2, 3), line)
                self.assertTrue(all(line.split("\t")), line)

    def test_a_retired_word_is_found(self):
        self.assertEqual(len(retired("src/x.c", "/* A\n * herald that vouches. */")), 2)
        self.assertEqual(retired("src/x.c", "/* The subscriber holds a tracking session. */"), [])

    def test_an_opening_is_found(self):
        self.assertTrue(OPENING.search("/* Who waits for it. */"))
        self.assertTrue(OPENING.search("/* First.\n * Nobody knows. */"))
        self.assertFalse(OPENING.search("/* The client that waits. */"))


class Words(unittest.TestCase):
    def test_source_and_docs_use_no_retired_word(self):
        found = [line for name in tracked() for line in retired(name, read(name))]
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_help_uses_no_retired_word(self):
        texts = {"heatsink help": help_text("help"),
                 **{f"heatsink {name} --help": help_text(name, "--help") for name in SUBCOMMANDS}}
        found = [line for name, text in texts.items() for line in retired(name, text)]
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_comments_begin_with_their_subject(self):
        found = [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(0)}"
                 for name in tracked() if name.endswith((".c", ".h", ".def")) for text in [read(name)]
                 for match in OPENING.finditer(text)]
        self.assertEqual(found, [], "\n" + "\n".join(found))


class Glossary(unittest.TestCase):
    """A row of docs/GLOSSARY.md is `| **term** | meaning | where |`; where names files and identifiers in backquotes."""

    ROW = re.compile(r"^\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \|$", re.M)

    def setUp(self):
        self.rows = self.ROW.findall(read("docs/GLOSSARY.md"))
        self.assertGreater(len(self.rows), 40)

    def test_terms_are_sorted_and_unique(self):
        terms = [term.lower() for term, _, _ in self.rows]
        self.assertEqual(terms, sorted(set(terms)))

    def test_every_term_is_in_use(self):
        """In the source or in another page, as it stands or with an ending."""
        text = "\n".join(read(name) for name in tracked() if name != "docs/GLOSSARY.md").lower()
        text = re.sub(r"\s*\n[ \t]*(\*[ \t]*)?", " ", text)
        unused = [term for term, _, _ in self.rows if not re.search(rf"\b{re.escape(term.lower())}", text)]
        self.assertEqual(unused, [], "in the glossary and nowhere else")

    def test_every_named_source_is_there(self):
        for term, _, where in self.rows:
            for name in re.findall(r"`([^`]+)`", where):
                if name.endswith((".c", ".h", ".py", ".def", ".md")) or "/" in name:
                    paths = [os.path.join(ROOT, folder, name) for folder in ("", "src", "docs")]
                    self.assertTrue(any(map(os.path.exists, paths)), f"{term}: {name} is not there")


if __name__ == "__main__":
    unittest.main()
