"""The datasets of bench/models: real ones from a folder of samples, and a generated one whose best
AUC is known. Every feature is categorical, as in FuxiCTR's recipes for Criteo, so that both
programs read the same ids, whose tables have the same sizes, from the same imported files."""
import csv
import gzip
import io
import math
import random
import re
import zipfile

from commands import RENZAN, run

PARTS = ("train", "valid", "test")


def bucket(text):
    """FuxiCTR's convert_to_bucket: floor(log(x)²) above 2, as Criteo's three winners had it."""
    if not text:
        return ""
    value = int(text)
    return str(math.floor(math.log(value) ** 2) if value > 2 else value)


def split(rows, shares=(0.8, 0.1, 0.1)):
    """The rows in an order of their own, in parts of these shares."""
    rows = list(rows)
    random.Random(1).shuffle(rows)
    first, second = (round(len(rows) * sum(shares[:i])) for i in (1, 2))
    return dict(zip(PARTS, (rows[:first], rows[first:second], rows[second:])))


def criteo_rows(file):
    """Columns without any value are left out by write_part."""
    for fields in csv.reader(file, delimiter="\t"):
        yield [fields[0], *map(bucket, fields[1:14]), *fields[14:]]


def criteo(path):
    with gzip.open(path, "rt") as file:
        return split(criteo_rows(file))


def adult(folder):
    def rows(name):
        with gzip.open(folder / name, "rt") as file:
            for *fields, label in csv.reader(file):
                # Gains and losses are amounts, and the third column a weight of the census.
                amounts = [bucket(fields[i]) for i in (2, 10, 11)]
                yield [str(int(label.startswith(">"))), *fields[:2], amounts[0], *fields[3:10],
                       *amounts[1:], *fields[12:]]
    learnt = split(rows("train.csv.gz"), (0.9, 0.1, 0))
    return {"train": learnt["train"], "valid": learnt["valid"], "test": list(rows("test.csv.gz"))}


def movielens(folder):
    """Ratings of at least 4, from user, film, its year and each of up to three genres."""
    return split(row[:-1] for row in movielens_rows(folder))


def movielens_histories(folder):
    """The same, and the films that the user had rated so before, of which the last 20 count."""
    return split(movielens_rows(folder))


def movielens_rows(folder):
    with zipfile.ZipFile(folder / "ml-latest-small.zip") as archive:
        def rows(name):
            with archive.open(f"ml-latest-small/{name}.csv") as file:
                yield from csv.DictReader(io.TextIOWrapper(file, "utf-8"))
        films = {}
        for row in rows("movies"):
            year = re.search(r"\((\d{4})\)\s*$", row["title"])
            genres = (row["genres"].split("|") + ["", ""])[:3]
            films[row["movieId"]] = [year.group(1) if year else "", *genres]
        ratings = sorted(rows("ratings"), key=lambda row: (int(row["timestamp"]), row["movieId"]))
    liked = {}
    for row in ratings:
        user, film, label = row["userId"], row["movieId"], int(float(row["rating"]) >= 4)
        before = liked.setdefault(user, [])
        yield [str(label), user, film, *films[film], "|".join(before[-20:])]
        before.extend([film] * label)


# Of each real dataset: its file or folder, what reads it, and the batch, which is smaller than
# FuxiCTR's 4,096 where that would make an epoch a few steps.
REAL = {
    "adult": ("adult", adult, 512),
    "ml-latest-small": ("ml-latest-small", movielens, 1024),
    "ml-latest-small_histories": ("ml-latest-small", movielens_histories, 1024),
    "criteo_kaggle_head10k": ("criteo_kaggle_head10k/train_head10000.txt.gz", criteo, 256),
    "criteo_kaggle_random45k":
        ("criteo_kaggle_random/train_random45k_7cat.txt.gz", criteo, 1024),
}
# Columns that are sequences, counted from 1, and the column whose table they share.
SEQUENCES = {"ml-latest-small_histories": {7: 2}}
MAX_LENGTH = 20
GENERATED = "generated"
NAMES = (GENERATED, *REAL)


def import_parts(parts, folder, sequences={}):
    """Imports training data, and the others with their vocabulary. `sequences`: as SEQUENCES."""
    used = [i for i in range(1, len(parts["train"][0])) if any(row[i] for row in parts["train"])]
    names = {i: f"C{at}" for at, i in enumerate(used, 1)}
    schema = folder / "schema.yaml"
    schema.write_text("header: true\ncolumns:\n  label: {role: label}\n" + "".join(
        f"  {name}: {{role: multi_hot, table: {names[sequences[i]]}, max_length: {MAX_LENGTH}}}\n"
        if i in sequences else f"  {name}: {{role: categorical}}\n" for i, name in names.items()))
    for part in PARTS:
        text = folder / f"{part}.csv"
        with open(text, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["label", *names.values()])
            writer.writerows([row[0], *(row[i] for i in used)] for row in parts[part])
        vocabulary = (("--vocabulary", "threshold:2") if part == "train" else
                      ("--vocabulary-from", folder / "train"))
        run(RENZAN, "data", "import", "--format", "csv", "--schema", schema, *vocabulary,
            "--output", folder / part, text)
        text.unlink()
    described = {names[i]: {"table": names[table], "max_length": MAX_LENGTH}
                 for i, table in sequences.items()}
    return {**{part: {"path": str(folder / part), "rows": len(parts[part])} for part in PARTS},
            "sequences": described}


def generated_parts(folder, rows):
    """Clicks in Criteo's format, and the best AUC that a model of the numbers, before they are put
    into buckets, can have on the test rows."""
    parts, first = {}, 0
    for part, size in zip(PARTS, (rows, rows // 10, rows // 10)):
        text = folder / f"{part}.tsv"
        said = run(RENZAN, "data", "synth", "--format", "criteo", "--seed", 1, "--rows", size,
                   "--first-row", first, "--rows-per-table", 5000, "--output", text)
        best = float(re.search(r"Bayes-optimal AUC ([\d.]+)", said).group(1))
        with open(text) as file:
            parts[part] = list(criteo_rows(file))
        text.unlink()
        first += size
    return parts, best


def prepare(name, source, folder, generated_rows):
    """{"train": {"path": ..., "rows": ...}, "valid", "test", "sequences", "batch", "best_auc"}, or
    None if there are no such data in the folder `source`."""
    if name == GENERATED:
        folder.mkdir()
        parts, best = generated_parts(folder, generated_rows)
        return {**import_parts(parts, folder), "batch": 4096, "best_auc": best}
    place, read, batch = REAL[name]
    if not (source / place).exists():
        return None
    folder.mkdir()
    parts = import_parts(read(source / place), folder, SEQUENCES.get(name, {}))
    return {**parts, "batch": batch, "best_auc": None}
