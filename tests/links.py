"""Checks the documents: every relative link leads to a file of the repository, every anchor to a
heading of it, and every document that a source file names is there."""
import pathlib
import re
import sys
import urllib.parse

root = pathlib.Path(sys.argv[1]).resolve()
# Files that a build, a run or a download has left beside the sources are ignored.
FOLDERS = ("bench", "cmake", "deploy", "docs", "examples", "python", "renzan", "scripts", "tests")
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1[ \t]*$", re.M | re.S)
CODE = re.compile(r"(`+)(?!`)(?:(?!\n\n).)*?(?<!`)\1(?!`)", re.S)  # within a paragraph
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*(\S+)", re.M)
HTML = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=\"([^\"\s]+)", re.I)
NAMED = re.compile(r"\bdocs/[\w/-]+\.(?:md|svg|json|txt)\b")


def blanked(match):
    """As many lines, without their text."""
    return "\n" * match[0].count("\n")


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    found, seen = set(), {}
    for heading in re.findall(r"^#{1,6} +(.+?)[ #]*$", FENCE.sub(blanked, text), re.M):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = seen[anchor] = seen.get(anchor, -1) + 1
        found.add(f"{anchor}-{count}" if count else anchor)
    return found


def links(text):
    """(line, target) of each link outside code. A link's text may contain code."""
    prose = FENCE.sub(blanked, text)
    for pattern in (LINK, DEFINITION, HTML):
        # Code may look like a link. Its length is kept, so that positions stay those in `prose`.
        for match in pattern.finditer(CODE.sub(lambda m: "x" * len(m[0]), prose)):
            yield prose.count("\n", 0, match.start()) + 1, match[1]


def wrong_with(document, target):
    """What is wrong with a link in `document`; None if it is fine."""
    parts = urllib.parse.urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    if parts.path.startswith("/"):
        return "an absolute path"
    path = (document.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else document
    if root != path and root not in path.parents:
        return "outside of the repository"
    if not path.exists():
        return "no such file"
    if parts.fragment and parts.fragment not in anchors(path.read_text()):
        return f"no heading #{parts.fragment}"
    return None


documents = sorted(root.glob("*.md")) + sorted(
    path for folder in FOLDERS for path in (root / folder).rglob("*.md"))
assert documents, "no documents found"
errors, checked = [], 0
for document in documents:
    for line, target in links(document.read_text()):
        checked += 1
        if wrong := wrong_with(document, target):
            errors.append(f"{document.relative_to(root)}:{line}: {target}: {wrong}")
for folder in FOLDERS:
    for path in sorted((root / folder).rglob("*")):
        if not path.is_file() or path.suffix in (".md", ".svg", ".json", ".pyc"):
            continue
        text = path.read_bytes().decode(errors="replace")
        for match in NAMED.finditer(text):
            if not (root / match[0]).exists():
                line = text.count("\n", 0, match.start()) + 1
                errors.append(f"{path.relative_to(root)}:{line}: {match[0]}: no such document")
print("\n".join(errors) or f"{checked} links of {len(documents)} documents lead somewhere")
sys.exit(bool(errors))
