# Group AUC by the values of a column, compared with numpy, on one worker and on several.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 9 --rows 4000 --output data >/dev/null
small_config data
$renzan train small.yaml --run-dir run 2>/dev/null
column=C1
for workers in 1 3; do
  $renzan eval run --data data --rows 3000 4000 --group-by $column --top 1000000 --json \
    --workers $workers --backend $([ $workers = 1 ] && echo local || echo gloo) >grouped.$workers
done
cmp grouped.1 grouped.3 || fail "a different result with three workers"
$renzan predict run --data data --rows 3000 4000 --output scores.npy 2>/dev/null
$renzan eval run --data data --rows 3000 4000 --json >plain
# Without --data, on the data that the run was evaluated on.
for workers in 1 2; do
  $renzan eval run --json --workers $workers >of_run 2>log.txt
  cmp plain of_run || fail "other metrics without --data"
  expect_log "on the data.eval of its configuration: rows 3000 to 4000 of data"
done
expect_exit 0 "rows                500" $renzan eval run --rows 3000 3500
expect_exit 64 "rows end at 9000, but data has only 4000" $renzan eval run --rows 3000 9000
python3 - <<'PY' || fail "different from numpy"
import json, math, pathlib
import numpy as np
grouped, plain = json.load(open("grouped.1")), json.load(open("plain"))
groups = grouped.pop("group_by")
assert grouped == plain, (grouped, plain)
def column(file):
    return np.concatenate([np.load(p) for p in sorted(pathlib.Path("data").rglob(file))])
label = column("label.npy")[3000:]
ids = column("ids.npy")[3000:, 0]
score = np.load("scores.npy")
total, weight, both = 0.0, 0, 0
assert len(groups["largest"]) == groups["groups"] == len(set(ids))
for group in groups["largest"]:
    at = ids == group["value"]
    positive, negative = score[at & (label > 0.5)], score[at & (label < 0.5)]
    assert group["rows"] == at.sum() and group["positives"] == len(positive)
    if not len(positive) or not len(negative):
        assert group["auc"] is None
        continue
    difference = positive[:, None] - negative[None, :]
    auc = ((difference > 0) + 0.5 * (difference == 0)).mean()
    # Different logits may give the same probability in float32.
    assert abs(auc - group["auc"]) < 1e-3, (group, auc)
    total, weight, both = total + group["auc"] * at.sum(), weight + at.sum(), both + 1
assert both == groups["groups_with_both_classes"] > 3
assert weight == groups["rows_with_both_classes"]
assert math.isclose(total / weight, groups["group_auc"], rel_tol=1e-12)
PY
# Evaluations during training say the same, on any workers and threads, and may decide by it.
by_group=(--set training.group_by=$column --set training.eval_every=2 --set training.keep_best=true
  --set training.early_stopping.metric=group_auc --set optimizer.schedule.plateau.metric=group_auc
  --set optimizer.schedule.plateau.patience=1)
without_times() {  # RUN
  grep '"eval/' $1/metrics.jsonl | sed 's/"time":[0-9.]*,//'
}
for setting in "1 1 local" "1 2 local" "3 1 gloo" "2 2 mpi"; do
  read -r workers threads backend <<<"$setting"
  $renzan train small.yaml --run-dir by.$workers.$threads "${by_group[@]}" --workers $workers \
    --threads $threads --backend $backend 2>log.txt || fail "$(cat log.txt)"
  expect_log "group AUC by $column"
  cmp <(without_times by.1.1) <(without_times by.$workers.$threads) || fail "other bits: $setting"
  [ "$(sha256_of by.1.1)" = "$(sha256_of by.$workers.$threads)" ] || fail "other models: $setting"
done
$renzan eval by.1.1 --group-by $column --json >best.json 2>/dev/null
python3 - <<'PY' || fail "another group AUC than eval: $(cat best.json)"
import json
seen = [json.loads(line).get("eval/group_auc") for line in open("by.1.1/metrics.jsonl")]
seen = [value for value in seen if value is not None]
assert len(set(seen)) > 3 and max(seen) == json.load(open("best.json"))["group_by"]["group_auc"], seen
PY
refused() {  # FRAGMENT OVERRIDE...: and nothing is written
  expect_exit 78 "$1" $renzan train small.yaml --run-dir refused "${@:2}"
  [ ! -e refused ] || fail "a refused run left a directory"
}
refused "training.group_by: nothing: data has no such column; choose a one-hot feature: C1, C2" \
  --set training.group_by=nothing
refused "has metric group_auc, which needs training.group_by" "${by_group[@]}" \
  --set training.group_by=
refused "has group_by, which needs data.eval.path" --set training.group_by=C1 \
  --set data.eval.path=
expect_exit 0 "group AUC" $renzan eval run --data data --group-by $column --top 2
expect_exit 0 "smaller ones" $renzan eval run --data data --group-by $column --top 2
expect_exit 64 "data has no such column; choose a one-hot feature: C1, C2" $renzan eval run --data data \
  --group-by nothing
$renzan train small.yaml --set data.eval.path= --run-dir unevaluated 2>/dev/null
for workers in 1 2; do
  expect_exit 64 "unevaluated: its configuration has no data.eval: name a dataset with --data DIR" \
    $renzan eval unevaluated --workers $workers
done
$renzan data synth --format dataset --seed 9 --rows 4000 --multi-hot 5 --output multi_hot >/dev/null
small_config multi_hot
$renzan train small.yaml --run-dir several 2>/dev/null
expect_exit 64 "a row may have several ids" $renzan eval several --data multi_hot --group-by M1
refused "training.group_by: M1: a row may have several ids" --set training.group_by=M1

# With a vocabulary the groups have the values' names, also those of a test set.
cat >columns.yaml <<'YAML'
columns: {y: {role: label}, x: {role: dense}, country: {role: categorical}}
YAML
awk 'BEGIN {
  split("Perú Chad Oman", names, " ")
  print "y,x,country"
  for (row = 0; row < 4000; row++)
    printf "%d,%g,%s\n", row % 3 == 0, row % 10 / 10, names[row % 4 + 1]
}' >train.csv
printf 'y,x,country\n%s' "$(yes $'1,0.1,Chad\n0,0.1,Chad\n1,0.5,\n0,0.1,Atlantis\n1,0.2,Mu' | head -500)" \
  >test.csv
$renzan data import train.csv --format csv --schema columns.yaml --vocabulary threshold:2 \
  --output named >/dev/null
$renzan data import test.csv --format csv --schema columns.yaml --vocabulary-from named \
  --output test >unseen.txt
grep -q "country *50.00 % of 400 lookups" unseen.txt || fail "$(cat unseen.txt)"
small_config named
$renzan train small.yaml --run-dir countries 2>/dev/null
$renzan eval countries --data test --group-by country --json >named.json
python3 - <<'PY' || fail "$(cat named.json)"
import json
groups = {group["id"]: group for group in json.load(open("named.json"))["group_by"]["largest"]}
assert len(groups) == 3 and groups[0]["value"] is None and groups[1]["value"] is None, groups
assert groups[0]["rows"] == 100 and groups[1]["rows"] == 200, groups
(chad,) = (group for id, group in groups.items() if id > 1)
assert chad["value"] == "Chad" and chad["rows"] == 200 and chad["positives"] == 100, chad
PY
$renzan eval countries --data test --group-by country >named.txt
for name in Chad "(missing)" "(rare or unseen)"; do
  grep -qF "$name" named.txt || fail "no $name: $(cat named.txt)"
done
! grep -q "(id)" named.txt || fail "$(cat named.txt)"
