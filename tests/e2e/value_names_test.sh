# Values of features have their names in what people read: `eval --group-by` and `predict --with`
# print them where there is a vocabulary, and say "id" where values were hashed. Scores are written in
# three formats, and for data without labels too.
source "$(dirname "$0")/lib.sh" "$@"
python3 - <<'PY'
import csv, random
random.seed(3)
with open("train.csv", "w", newline="") as out:
    rows = csv.writer(out)
    rows.writerow(["click", "age", "country", "genres", "user"])
    for row in range(4000):
        country = ["de", "fr", 'a "b", c', "", f"rare{row}"][min(row % 5, 4 if row % 100 == 4 else 3)]
        genres = "|".join(random.sample(["news", "sport", "art"], row % 3))
        rows.writerow([int(random.random() < 0.3), row % 80, country, genres, f"u{row}"])
PY
cat >schema.yaml <<'YAML'
columns:
  click: {role: label}
  age: {role: dense}
  country: {role: categorical}
  genres: {role: multi_hot}
  user: {role: skip}
YAML
for vocabulary in threshold:2 hash:50; do
  unseen=()
  [ ${vocabulary%:*} = hash ] || unseen=(--unseen 0)  # each value keeps its id
  $renzan data import --format csv --schema schema.yaml --vocabulary $vocabulary "${unseen[@]}" \
    --output ${vocabulary%:*} train.csv >/dev/null
  small_config ${vocabulary%:*}
  $renzan train small.yaml --run-dir run.${vocabulary%:*} 2>/dev/null
  $renzan eval run.${vocabulary%:*} --data ${vocabulary%:*} --group-by country --json \
    >groups.${vocabulary%:*}
  for format in csv parquet npy; do
    $renzan predict run.${vocabulary%:*} --data ${vocabulary%:*} --rows 3000 4000 \
      --output scores.${vocabulary%:*}.$format --with click,age,country,genres 2>/dev/null
  done
done
python3 - <<'PY' || fail "not the values of the input"
import csv, json
rows = list(csv.DictReader(open("train.csv", newline="")))
groups = {"other" if group["id"] == 1 else group["value"]: group["rows"]
          for group in json.load(open("groups.threshold"))["group_by"]["largest"]}
counts = {}
for row in rows:
    value = row["country"] or None
    value = "other" if value and value.startswith("rare") else value
    counts[value] = counts.get(value, 0) + 1
assert groups == counts, (groups, counts)
hashed = json.load(open("groups.hash"))["group_by"]["largest"]
assert len(hashed) > 3 and all("value" not in group for group in hashed), hashed

scored = list(csv.DictReader(open("scores.threshold.csv", newline="")))
assert len(scored) == 1000
for row, score in zip(rows[3000:], scored):
    country = "(rare or unseen)" if row["country"].startswith("rare") else row["country"]
    assert score["click"] == row["click"] and float(score["age"]) == float(row["age"])
    assert score["country"] == country, (score, row)
    assert sorted(score["genres"].split("|")) == sorted(row["genres"].split("|")), (score, row)
    assert 0 < float(score["score"]) < 1
hashed = list(csv.DictReader(open("scores.hash.csv", newline="")))
assert list(hashed[0]) == ["click", "age", "country (id)", "genres (id)", "score"], hashed[0]
assert len({score["country (id)"] for score in hashed}) > 3
PY
python3 - "$here" <<'PY' || fail "Parquet has other values than CSV"
import csv, struct, sys
sys.path.insert(0, sys.argv[1])
import read_parquet
for vocabulary in "threshold", "hash":
    rows = list(csv.DictReader(open(f"scores.{vocabulary}.csv", newline="")))
    columns = read_parquet.read(f"scores.{vocabulary}.parquet")
    assert list(columns) == list(rows[0]), list(columns)
    for name, values in columns.items():
        kinds = {"genres": str, "genres (id)": str, "country": str, "country (id)": int}
        kind = kinds.get(name, float)
        assert all(type(value) is kind for value in values), (name, values[:9])
        expected = [row[name] for row in rows]
        if kind is float:  # float32: CSV has their shortest texts
            single = struct.Struct("f").pack
            assert [single(value) for value in values] == [single(float(v)) for v in expected], name
        else:
            assert [str(value) for value in values] == expected, name
PY
python3 - <<'PY' || fail "arrays have other values than CSV"
import csv
import numpy as np
for vocabulary in "threshold", "hash":
    rows = list(csv.DictReader(open(f"scores.{vocabulary}.csv", newline="")))
    array = np.load(f"scores.{vocabulary}.npy")
    assert list(array.dtype.names) == list(rows[0]), array.dtype
    for name in array.dtype.names:
        kinds = {"genres": "U", "genres (id)": "U", "country": "U", "country (id)": "i"}
        kind = array.dtype[name].kind
        assert kind == kinds.get(name, "f"), array.dtype
        expected = np.array([row[name] for row in rows])
        assert (array[name] == (expected if kind == "U" else expected.astype(array.dtype[name]))).all()
    # As long as the longest value or bag, or "(rare or unseen)".
    if vocabulary == "threshold":
        assert array.dtype["country"] == "<U16" and array.dtype["genres"] == "<U10", array.dtype
PY
expect_exit 0 'a "b", c' $renzan eval run.threshold --data threshold --group-by country
expect_exit 0 "(missing)" $renzan eval run.threshold --data threshold --group-by country
expect_exit 0 "country (id)" $renzan eval run.hash --data hash --group-by country
expect_exit 64 "did you mean 'country'?" \
  $renzan predict run.hash --data hash --output scores.csv --with contry
expect_exit 64 "must end in .csv, .npy or .parquet" \
  $renzan predict run.hash --data hash --output s.feather
expect_exit 64 "named twice" $renzan predict run.hash --data hash --output s.csv --with age,age
[ -z "$(ls -A | grep '^\.\?s\.')" ] || fail "a file was written"

# Without labels, the same rows have the same scores, and nothing else can be done with them.
cut -d, -f2- train.csv >unlabelled.csv
expect_exit 78 "needs --vocabulary-from TRAINING_DATA" \
  $renzan data import --format csv --schema schema.yaml --output unlabelled unlabelled.csv
expect_exit 0 "no labels: for predictions only" $renzan data import --format csv \
  --schema schema.yaml --vocabulary-from threshold --output unlabelled unlabelled.csv
expect_exit 0 "4000 rows, no labels" $renzan data inspect unlabelled
for data in threshold unlabelled; do
  $renzan predict run.threshold --data $data --output $data.scores.csv --with age,country 2>/dev/null
done
cmp threshold.scores.csv unlabelled.scores.csv || fail "other scores without labels"
$renzan predict run.threshold --data unlabelled --output unlabelled.npy 2>/dev/null
expect_exit 64 "no such column" \
  $renzan predict run.threshold --data unlabelled --output s.csv --with click
expect_exit 78 "unlabelled has no labels" $renzan eval run.threshold --data unlabelled
expect_exit 78 "unlabelled has no labels" $renzan eval run.threshold --data unlabelled \
  --group-by country --workers 2 --backend gloo
small_config unlabelled
expect_exit 78 "unlabelled has no labels" $renzan train small.yaml --run-dir refused
small_config threshold
expect_exit 78 "unlabelled has no labels" \
  $renzan train small.yaml --run-dir refused --set data.eval.path=unlabelled
[ ! -e refused ] || fail "a run directory was made"

# With several workers, all of them report a wrong name.
expect_exit 64 "did you mean 'country'?" $renzan predict run.hash --data hash --output scores.csv \
  --with contry --workers 2 --backend gloo
$renzan predict run.hash --data hash --rows 3000 4000 --output two.csv --workers 2 --backend gloo \
  --with click,age,country,genres 2>/dev/null
cmp two.csv scores.hash.csv || fail "another file with two workers"
$renzan predict run.hash --data hash --rows 3000 4000 --output two.parquet --workers 2 \
  --backend gloo --with click,age,country,genres 2>/dev/null
cmp two.parquet scores.hash.parquet || fail "another file with two workers"
