# Features' values appear by name wherever people read them: `eval --group-by` and `predict --with`
# print the names if there is a vocabulary, and say "id" if values were hashed.
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
  $renzan predict run.${vocabulary%:*} --data ${vocabulary%:*} --rows 3000 4000 \
    --output scores.${vocabulary%:*}.csv --with click,age,country,genres 2>/dev/null
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
expect_exit 0 'a "b", c' $renzan eval run.threshold --data threshold --group-by country
expect_exit 0 "(missing)" $renzan eval run.threshold --data threshold --group-by country
expect_exit 0 "country (id)" $renzan eval run.hash --data hash --group-by country
expect_exit 64 "did you mean 'country'?" \
  $renzan predict run.hash --data hash --output scores.csv --with contry
expect_exit 64 "ends in .csv" $renzan predict run.hash --data hash --output s.npy --with country
[ ! -e s.npy ] || fail "a file was written"

# With several workers, all of them report a wrong name.
expect_exit 64 "did you mean 'country'?" $renzan predict run.hash --data hash --output scores.csv \
  --with contry --workers 2 --backend gloo
$renzan predict run.hash --data hash --rows 3000 4000 --output two.csv --workers 2 --backend gloo \
  --with click,age,country,genres 2>/dev/null
cmp two.csv scores.hash.csv || fail "another file with two workers"
