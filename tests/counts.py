"""Checks that whatever may be one is counted by Counted() (renzan/base/counted.h), so that no message
says "1 steps": no format string of the program has "{} steps", for any noun that Counted() counts
anywhere, and nothing else makes plurals."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
# Without what only bugs say; strings in several parts are joined.
sources = {path: re.sub(r"\bCHECK_MSG\([^;]*;", "", re.sub(r'"\s*\n\s*"', "", path.read_text()))
           for path in sorted((root / "renzan").rglob("*"))
           if path.suffix in (".cc", ".h") and "test" not in path.relative_to(root).as_posix()
           and path.stem != "counted"}
nouns = set()
for text in sources.values():
    for one, plural in re.findall(r'Counted\([^;]*?,\s*"([^"]+)"(?:,\s*"([^"]+)")?\)', text):
        nouns.add((plural or one + "s").split()[-1])
# A verb after the noun would have to change, too: such messages are about many.
COUNTED = re.compile(r"\{\} (?:(?!of )[a-z]+[a-rt-z] )?(?:" + "|".join(sorted(nouns)) +
                     r")\b(?!/s| (?:are|do|have|need|wait|that)\b)")
PLURAL = re.compile(r'== 1 \? "" : "e?s"')
wrong = [f"{path.relative_to(root)}: '{found}': use Counted()"
         for path, text in sources.items() for pattern in (COUNTED, PLURAL)
         for found in pattern.findall(text)]
print("\n".join(wrong))
print(f"{len(nouns)} nouns")
sys.exit(bool(wrong) or len(nouns) < 30)
