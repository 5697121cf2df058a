"""Checks that every model of the catalogue and every block has golden losses of PyTorch, a block at
least within a model that has them, and a row in docs/models.md, that the page has no others, and
that bench/models_costs knows every model."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
model = root / "renzan/model"
golden = root / "tests/golden"

# Golden configurations, each with its recorded losses beside it, which name models and blocks.
configs = [path.read_text() for path in golden.rglob("*.yaml")
           if path.name != "schema.yaml" and path.with_suffix(".json").exists()]
recorded = {found for text in configs for found in re.findall(r"\btype: (\w+)", text)}
if any(re.search(r"^model:", text, re.M) and not re.search(r"\bmodel:\s*\{?\s*type:", text)
       for text in configs):
    recorded.add(re.search(r'std::string type = "(\w+)"',
                           (root / "renzan/config/model_config.h").read_text())[1])

models = re.findall(r'\{\.name = "(\w+)"', (model / "catalogue/catalogue.cc").read_text())
types = re.search(r"> types = \{(.*?)\};", (model / "blocks/types.cc").read_text(), re.S)[1]
headers = "\n".join(path.read_text() for path in sorted((model / "blocks").glob("*.h")))
kinds = dict(re.findall(r'^struct (\w+) \{(?:(?!^\};).)*?kType = "(\w+)"', headers, re.M | re.S))
blocks = {kinds[struct]: struct for struct in re.findall(r"(\w+)\{\}", types)}
graphs = "\n".join(path.read_text() for path in (model / "catalogue").glob("*.cc")
                   if not path.stem.endswith("_test"))


def rows_of(heading):
    """The first cells of a table of docs/models.md, each of one name."""
    table = (root / "docs/models.md").read_text().split(heading, 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.M)


wrong = []
for kind, names, rows in (("model", models, rows_of("\n| type | what it is |")),
                          ("block", list(blocks), rows_of("\n| block | takes |"))):
    wrong += [f"docs/models.md: no row of the {kind} {name}" for name in names if name not in rows]
    wrong += [f"docs/models.md: a row of {name}, which is no {kind}" for name in rows
              if name not in names]
wrong += [f"tests/golden: no configuration with losses of model.type: {name}" for name in models
          if name not in recorded]
wrong += [f"tests/golden: no configuration with losses states the block {name}, nor does a model"
          for name, struct in blocks.items()
          if name not in recorded and not re.search(rf"\b{struct}\{{", graphs)]
costs = (root / "bench/models_costs").read_text()
wrong += [f"bench/models_costs: MODELS has no {name}" for name in models
          if not re.search(rf'^    "{name}": \(', costs, re.M)]
print("\n".join(wrong))
print(f"{len(models)} models, {len(blocks)} blocks")
sys.exit(bool(wrong) or len(models) < 20 or len(blocks) < 28)
