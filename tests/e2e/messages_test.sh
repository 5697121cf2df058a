# What people type by mistake: one clear error, which names what they typed and what to type instead,
# before anything is written.
source "$(dirname "$0")/lib.sh" "$@"
python3 - <<'PY'
import csv, random
random.seed(3)
with open("rows.csv", "w", newline="") as out:
    rows = csv.writer(out)
    rows.writerow(["click", "importance", "age", "country", "genres", "request", "score",
                   'city, "of"'])
    for row in range(4000):
        genres = "|".join(random.sample(["news", "sport", "art"], row % 3))
        rows.writerow([int(random.random() < 0.3), row % 4 / 2, row % 80, f"c{row % 9}", genres,
                       f"r{row}", row % 7, f"t{row}"])
PY
cat >schema.yaml <<'YAML'
columns:
  click: {role: label}
  importance: {role: weight}
  age: {role: dense}
  country: {role: categorical, key: true}
  genres: {role: multi_hot}
  request: {role: key}
  score: {role: dense}
  'city, "of"': {role: key}
YAML
$renzan data import rows.csv --format csv --schema schema.yaml --output data >/dev/null
small_config data
$renzan train small.yaml --run-dir runs/a --set checkpoint.every_steps=5 2>log.txt
# Two copies need no more than one, so there is no "at most".
grep -q "memory of a worker: .* more while a checkpoint is written$" log.txt || fail "$(cat log.txt)"
refuses() { expect_exit 64 "error: $1" "${@:2}"; }

# Usage errors say what was typed.
refuses "--data is required (\`renzan predict --help\` shows the arguments)" $renzan predict runs/a --output s.npy
refuses "--on-bad-row: 'skp' is not one of error, skip; did you mean 'skip'?" \
  $renzan data import rows.csv --output other --on-bad-row skp
for verb in "train small.yaml" "eval runs/a --data data" "predict runs/a --data data --output s.npy"; do
  # shellcheck disable=SC2086
  refuses "--backend: 'tcp' is not one of auto, local, gloo, mpi" $renzan $verb --backend tcp
done
expect_exit 78 "error: --workers 100: workers = 100 is more than the 8 virtual workers" \
  $renzan train small.yaml --run-dir none --workers 100
expect_exit 78 "error: --set workers=100: workers = 100 is more than" \
  $renzan train small.yaml --run-dir none --set workers=100
expect_exit 78 "virtual_workers (8): the nearest are 96 and 104" \
  $renzan train small.yaml --run-dir none --set training.batch_size=100
refuses "renzan train does not expect 'threads=2': repeat --set before each key" \
  $renzan train small.yaml --set workers=1 threads=2
refuses "renzan has no verb 'evaluate': did you mean 'eval'?" $renzan evaluate runs/a
refuses "renzan has no verb 'import': did you mean 'data import'?" $renzan import rows.csv
refuses "renzan has no verb 'model' (" $renzan model
refuses "renzan has no verb 'nope' (" $renzan help nope

# The printed configuration names every value that a key may have.
$renzan train --print-config small.yaml >printed.yaml
for comment in "allowed: dlrm, dlrm_dcnv2" "empty: as in model" "allowed: sum, mean" \
  "allowed: cpu, cuda" "a multiple of numerics.virtual_workers"; do
  [ "$comment" = "empty: as in model" ] || grep -q "# .*$comment" printed.yaml || fail "no '$comment'"
done
$renzan train --print-config printed.yaml | cmp - printed.yaml || fail "not read back"

# Columns.
$renzan predict runs/a --data data --output with.csv \
  --with 'request,"city, ""of""",importance' --with country 2>/dev/null
python3 - <<'PY' || fail "not the weights of the input"
import csv
rows, scores = (list(csv.DictReader(open(name, newline=""))) for name in ("rows.csv", "with.csv"))
assert list(scores[0]) == ["request", 'city, "of"', "importance", "country", "score"], scores[0]
assert len(scores) == 4000
for row, score in zip(rows, scores):
    assert score["request"] == row["request"] and score['city, "of"'] == row['city, "of"']
    assert float(score["importance"]) == float(row["importance"]), (row, score)
PY
has="it has country, request, \"city, \"\"of\"\"\", click, importance, age, score, genres, input_row; "
has+="quote names with a comma: --with '\"city, \"\"of\"\"\"'"
for columns in '"a,b' '"city, state" ,request' '"city"x'; do
  refuses "--with $columns: its quotes are wrong: put them around a whole name" \
    $renzan predict runs/a --data data --output s.csv --with "$columns"
done
for columns in request, ,request request,,age '' '""'; do
  refuses "--with $columns: a name is empty: write the names with one comma between them" \
    $renzan predict runs/a --data data --output s.csv --with "$columns"
done
refuses "--with requst: data has no such column (did you mean 'request'?); $has" \
  $renzan predict runs/a --data data --output s.csv --with requst
refuses "--with score: the model's scores, the last column, have this name: leave it out" \
  $renzan predict runs/a --data data --output s.csv --with score
for of in "age: this is a dense feature" "click: this is a label" \
  "importance: this is the weight" "genres: a row may have several ids" \
  "contry: data has no such column (did you mean 'country'?)"; do
  refuses "--group-by $of" $renzan eval runs/a --data data --group-by "${of%%:*}"
  grep -q '; choose a key: country, request, city, "of"$' out.txt || fail "$(cat out.txt)"
done

# Results are never replaced.
$renzan checkpoint export runs/a --output model.safetensors >/dev/null
$renzan plan small.yaml --sweep workers=1..2 --svg sweep.svg >/dev/null
$renzan data synth --rows 10 --output ten.tsv >/dev/null
$renzan simulate --generate jobs=5,seed=1 --nodes 1 --svg jobs.svg --record jobs.zst >/dev/null 2>&1
expect_exit 0 "wrote the plan to plan.yaml" $renzan plan small.yaml --workers 2 --output plan.yaml
for verb in "checkpoint export runs/a --output model.safetensors" \
  "plan small.yaml --workers 2 --output plan.yaml" \
  "predict runs/a --data data --output with.csv" "data import rows.csv --output data" \
  "plan small.yaml --sweep workers=1..2 --svg sweep.svg" "data synth --rows 10 --output ten.tsv" \
  "simulate --generate jobs=5,seed=1 --nodes 1 --svg jobs.svg" \
  "simulate --generate jobs=5,seed=1 --nodes 1 --record jobs.zst"; do
  # shellcheck disable=SC2086
  expect_exit 73 " already exists: choose another name or remove it" $renzan $verb
done
refuses "--output model.onnx: the name must end in .safetensors" \
  $renzan checkpoint export runs/a --output model.onnx
[ ! -e model.onnx ] || fail "wrote model.onnx"
mkdir folder
for name in folder/ "" . .. folder/. s3://bucket s3://bucket/ s3://bucket/folder/; do
  refuses "--output $name: the name must end in .safetensors" \
    $renzan checkpoint export runs/a --output "$name"
done
[ -z "$(ls -A folder)" ] || fail "wrote $(ls -A folder)"
expect_exit 0 "exported.safetensors: " $renzan checkpoint export runs/a --output exported
cmp model.safetensors exported.safetensors || fail "another file without the ending"
expect_exit 73 "exported.safetensors already exists" $renzan checkpoint export runs/a --output exported

# Paths that are something else.
for verb in "eval model.safetensors --data data" "checkpoint diff runs/a model.safetensors" \
  "checkpoint verify model.safetensors"; do
  # shellcheck disable=SC2086
  expect_exit 66 "error: model.safetensors is a file: name a run, a " $renzan $verb
done
expect_exit 66 "it has no manifest.json; it holds runs: name one, such as runs/a" \
  $renzan eval runs --data data
expect_exit 66 "it holds runs: name one, such as runs/a" $renzan checkpoint list runs
expect_exit 66 "runs/b does not exist: name a run, a model or a checkpoint; there is runs/a, for one" \
  $renzan eval runs/b --data data
# A run where --run-dir, or a configuration file, goes.
for verb in "train --resume runs/a" "train runs/a" "train runs/a/"; do
  # shellcheck disable=SC2086
  expect_exit 66 "is a run: resume it with \`renzan train --resume --run-dir runs/a" $renzan $verb
done
expect_exit 66 "runs/a/model is of the run $work/runs/a: resume that" $renzan train runs/a/model
expect_exit 66 "folder is a directory: name a configuration file" $renzan train folder
expect_exit 66 "runs/b does not exist; there is runs/a, for one" \
  $renzan train --resume --run-dir runs/b
expect_exit 66 "runs is not a run: it has no manifest.json; it holds runs" $renzan train --rerun runs
expect_exit 73 "small.yaml is a file: choose another --run-dir for this run" \
  $renzan train small.yaml --run-dir small.yaml
expect_exit 64 "'30%' is not a number: 0.3 keeps 30 % of them" \
  $renzan data import rows.csv --output none --keep-negatives 30%
mkdir elsewhere
(cd elsewhere && expect_exit 66 "data is not a dataset: data/dataset.yaml does not exist below the current directory" \
  $renzan train ../small.yaml --run-dir none)
expect_exit 66 "$work/runs/dataset.yaml does not exist;" \
  $renzan train small.yaml --run-dir none --set data.train.path="$work/runs"

# A run is not written into a dataset, a model or a checkpoint, nor is one begun that cannot resume.
checkpoint=$(ls -d runs/a/checkpoints/step-* | head -1)
find . ! -name out.txt ! -name before.txt | sort >before.txt
for what in "data is a dataset" "runs/a/model is a model" "$checkpoint is a checkpoint"; do
  for workers in 1 2; do
    expect_exit 73 "$what: choose another --run-dir for this run" \
      $renzan train small.yaml --run-dir "${what%% *}" --workers $workers
    expect_exit 73 "$what: choose another checkpoint.dir for this run" \
      $renzan train small.yaml --run-dir none --set checkpoint.dir="${what%% *}" --workers $workers
  done
done
expect_exit 66 "runs/new/checkpoints has no checkpoint to resume from" \
  $renzan train small.yaml --resume --run-dir runs/new
find . ! -name out.txt ! -name before.txt | sort | diff before.txt - || fail "something was written"
expect_exit 0 "all checksums match" $renzan data verify data

# Sizes in a plan are those of the files.
$renzan plan small.yaml --workers 1 --json >plan.json
$renzan checkpoint list runs/a --json >list.json
python3 - <<'PY' || fail "other sizes"
import json
plan, listed = (json.load(open(name)) for name in ("plan.json", "list.json"))
checkpoint = max(entry["bytes"] for entry in listed if "checkpoints/" in entry["path"]
                 and entry["kind"] == "full")
model = next(entry["bytes"] for entry in listed if entry["path"].endswith("/model"))
# Files have headers and a few numbers more.
assert 0 <= checkpoint - plan["full_checkpoint_bytes"] < 20_000, (plan, listed)
assert 0 <= model - plan["model_bytes"] < 20_000, (plan["model_bytes"], model)
worker = plan["workers"][0]
assert worker["output_dist_seconds"] == plan["phases"]["output_dist"] > 0, plan
PY
expect_exit 0 " MB" $renzan checkpoint list runs/a
