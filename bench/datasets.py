"""Generated datasets for benchmarks."""
import pathlib
import random
import tempfile

from commands import RENZAN, run


def criteo(output, rows, table_rows, program=RENZAN):
    """26 tables of `table_rows` rows. Values follow power laws, as clicks do."""
    with tempfile.TemporaryDirectory() as directory:
        text = f"{directory}/clicks.tsv"
        run(program, "data", "synth", "--format", "criteo", "--seed", 1, "--rows", rows,
            "--output", text)
        run(program, "data", "import", "--format", "criteo", "--vocabulary", f"hash:{table_rows}",
            "--output", output, text)


def uniform(output, rows, tables, table_rows, pooling):
    """`pooling` ids for each of `tables` tables, all of `table_rows` ids equally likely: no row of a
    table is looked up more often than another, so that caches help least."""
    dense = [f"I{i}" for i in range(1, 14)]
    categorical = [f"C{i}" for i in range(1, tables + 1)]
    role = "categorical" if pooling == 1 else "multi_hot"
    schema = "columns:\n  label: {role: label}\n"
    schema += "".join(f"  {name}: {{role: dense, transform: log}}\n" for name in dense)
    schema += "".join(f"  {name}: {{role: {role}}}\n" for name in categorical)
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        (folder / "schema.yaml").write_text(schema)
        with open(folder / "data.csv", "w") as file:
            file.write(",".join(["label", *dense, *categorical]) + "\n")
            for _ in range(rows):
                bags = (draw.randbytes(4 * pooling).hex("|", 4) for _ in range(tables))
                numbers = draw.randbytes(1 + len(dense))
                file.write(f"{numbers[0] & 1},{','.join(map(str, numbers[1:]))},{','.join(bags)}\n")
        run(RENZAN, "data", "import", "--format", "csv", "--schema", folder / "schema.yaml",
            "--vocabulary", f"hash:{table_rows}", "--output", output, folder / "data.csv")
