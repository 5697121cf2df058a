# What `renzan data schema` proposes can be imported and trained on unchanged.
source "$(dirname "$0")/lib.sh" "$@"
python3 - <<'PY'
import random
random.seed(1)
with open("clicks.csv", "w") as file:
    print(",userId,when,price,share,click", file=file)
    for row in range(4000):
        price = random.random() * 1e4
        print(f"{row},{random.randrange(99)},2024-01-{row % 28 + 1:02},{price:.2f},"
              f"{price % 1 if row % 5 else ''},{int(random.random() * 1e4 < price)}", file=file)
PY
$renzan data schema clicks.csv >clicks.yaml
grep -q "click: {role: label}" clicks.yaml || { cat clicks.yaml; fail "another label"; }
$renzan data import clicks.csv --format csv --schema clicks.yaml --output data >import.txt 2>&1 ||
  { cat import.txt; fail "the schema cannot be imported"; }
! grep -q warning import.txt || { cat import.txt; fail "a warning"; }
# Nothing says any more which shares were missing.
grep -q "share: {role: dense, fill: mean}" clicks.yaml || { cat clicks.yaml; fail "no fill"; }
grep -qE "^share +dense +4000 +- " <<<"$($renzan data inspect data)" || fail "$($renzan data inspect data)"
$renzan data inspect data --json | python3 -c 'import json, sys
missing = {feature["name"]: feature["missing"] for feature in json.load(sys.stdin)["features"]}
assert missing["share"] is None and missing["userId"] == 0, missing' || fail "data inspect --json"
small_config data
$renzan train small.yaml --run-dir run 2>/dev/null
expect_exit 66 "none.csv" $renzan data schema none.csv
expect_exit 64 "standard input" $renzan data schema -

# MovieLens, whose times and ids are numbers.
zip=$shared_data/ml-latest-small/ml-latest-small.zip
[ -e $zip ] || { echo "without MovieLens: $zip is absent"; exit 0; }
python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall()' $zip
expect_exit 65 "this is a zip archive" $renzan data schema $zip
for file in ratings tags movies links; do
  $renzan data schema ml-latest-small/$file.csv >$file.yaml
  $renzan data import ml-latest-small/$file.csv --format csv --schema $file.yaml --output $file \
    >import.txt 2>&1 || { cat $file.yaml import.txt; fail "the schema of $file cannot be imported"; }
done
for line in "userId: {role: categorical}" "movieId: {role: categorical}" \
  "rating: {role: label, at_least: 4}" 'timestamp: {role: date, date: "%s"'; do
  grep -qF "$line" ratings.yaml || { cat ratings.yaml; fail "no $line"; }
done
grep -qF 'genres: {role: multi_hot, separator: "|"}' movies.yaml || { cat movies.yaml; fail "no bag of genres"; }
