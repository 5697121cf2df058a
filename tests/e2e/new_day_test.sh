# A new day's data, by the commands of docs/training.md: vocabularies grow, rows follow their values,
# and a run that starts from another's model is the same on any workers and after a kill.
source "$(dirname "$0")/lib.sh" "$@"

awk '/^## / { section = $0 } /^```/ { block = !block; next }
  section == "## A new day'"'"'s data" && block' "$source_root/docs/training.md" >commands.sh
[ "$(grep -c '^renzan ' commands.sh)" = 4 ] || { cat commands.sh; fail "other commands in training.md"; }

# Each user and each item has a taste of its own. Half of Tuesday's users are new, and it is
# too short to learn the others' tastes from it alone.
python3 - <<'PY'
import random
random.seed(5)
bias = {}
def taste(name):
    return bias.setdefault(name, random.choice([-1.5, 1.5]))
def write(path, rows, users):
    with open(path, "w") as out:
        out.write("click,age,user,item\n")
        for _ in range(rows):
            user, item = f"u{random.choice(users)}", f"i{random.randrange(50)}"
            click = random.random() < 1 / (1 + 2.718281828 ** -(taste(user) + taste(item)))
            out.write(f"{int(click)},{random.randrange(20, 70)},{user},{item}\n")
write("monday.csv", 16000, range(0, 400))
write("tuesday.csv", 2000, range(200, 600))
write("later.csv", 4000, range(200, 600))
PY
cat >schema.yaml <<'YAML'
columns:
  click: {role: label}
  age: {role: dense, transform: log}
  user: {role: categorical}
  item: {role: categorical}
YAML
cat >config.yaml <<'YAML'
seed: 4
data: {eval: {path: data/monday, rows: [0, 1000]}}  # which has Monday's vocabulary
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16]}
training: {batch_size: 128, epochs: 2, log_every: 1000}
optimizer:
  dense: {type: adam, learning_rate: 0.005}
  sparse: {type: rowwise_adagrad, learning_rate: 0.1}
YAML
mkdir bin
ln -s "$renzan" bin/renzan
PATH=$work/bin:$PATH bash -euo pipefail commands.sh >log.txt 2>&1 ||
  { status=$?; show_log; fail "exit $status"; }
expect_log "new values, which data/monday lacks"
new=$(sed -nE 's/^  user +([0-9]+) new, [0-9]+ in all; 200 of the 400 earlier values do not occur in this data$/\1/p' log.txt)
[ "${new:-0}" -gt 150 ] || { show_log; fail "not the users that are new"; }
expect_log "starting from runs/monday/model (step 250), sha256 $(sha256_of runs/monday)"
expect_log "454 taken, $new new (user $new), none dropped"
expect_log "optimizer states: dense adam taken; tables rowwise_adagrad taken"
sha256=$(sha256_of runs/tuesday)
[ "$(grep -c "eval at step 250" log.txt)" = 1 ] || { show_log; fail "evaluated other than Monday's run"; }
expect_exit 78 "data/monday: feature 'user' has 402 ids" $renzan train config.yaml \
  --set data.train.path=data/tuesday --run-dir runs/none
sed -i '/^data:/d' config.yaml

# It predicts the next rows better than Monday's model and than Tuesday's data alone.
tuesday=(renzan train config.yaml --set data.train.path=data/tuesday --set checkpoint.every_steps=5)
tuesday[0]=$renzan
"${tuesday[@]}" --run-dir runs/alone 2>/dev/null
for day in monday tuesday; do
  $renzan data import --format csv --schema schema.yaml --vocabulary-from data/$day \
    --output data/later.$day later.csv >/dev/null
done
metric_of() { # METRIC RUN DATA
  $renzan eval "runs/$2" --data "data/$3" --json 2>/dev/null |
    python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}
started=$(metric_of auc tuesday later.tuesday) before=$(metric_of auc monday later.monday)
alone=$(metric_of auc alone later.tuesday)
awk -v started=$started -v before=$before -v alone=$alone \
  'BEGIN { exit !(started > before + 0.01 && started > alone + 0.01) }' ||
  fail "AUC $started from Monday's model, which has $before; $alone without it"

# The same on two workers; killed, and resumed without Monday's model.
from=(--initialize-from runs/monday)
"${tuesday[@]}" "${from[@]}" --run-dir runs/two --workers 2 2>log.txt || { show_log; fail "two workers"; }
[ "$(sha256_of runs/two)" = $sha256 ] || fail "another model on two workers"
"${tuesday[@]}" "${from[@]}" --run-dir runs/three --workers 3 --set sharding.default=table_wise \
  2>log.txt || { show_log; fail "three workers"; }
[ "$(sha256_of runs/three)" = $sha256 ] || fail "another model on three workers"
is_there() { [ -n "$(checkpoints_in runs/killed/checkpoints 2>/dev/null)" ]; }
is_there_or_has_ended() { is_there || has_ended "$launcher"; }
for attempt in $(seq 20); do
  rm -rf runs/killed
  "${tuesday[@]}" "${from[@]}" --run-dir runs/killed 2>log.txt &
  launcher=$!
  wait_for is_there_or_has_ended
  kill -KILL $launcher 2>/dev/null || true  # it may have just ended
  wait $launcher 2>/dev/null || true
  launcher=""
  [ -e runs/killed/model ] || break
done
is_there && [ ! -e runs/killed/model ] || fail "not killed after its first checkpoint"
mv runs/monday aside
expect_exit 78 "training.initialize_from is" "${tuesday[@]}" --run-dir runs/killed
"${tuesday[@]}" --initialize-from ./runs//monday/ --run-dir runs/killed --workers 2 2>log.txt ||
  { show_log; fail "resume"; }
expect_log "resuming from step-"
[ "$(sha256_of runs/killed)" = $sha256 ] || fail "another model after a kill"
expect_exit 66 "cannot start from runs/monday" "${tuesday[@]}" "${from[@]}" --run-dir runs/none
[ ! -e runs/none ] || fail "a run directory without a model to start from"
expect_exit 66 "no checkpoint to resume from" "${tuesday[@]}" "${from[@]}" --run-dir runs/none --resume
mv aside runs/monday

# Repeating it starts from the same model, which must not have changed.
expect_exit 0 identical $renzan train --rerun runs/tuesday --run-dir runs/again
mv runs/monday aside
cp -r runs/alone runs/monday
expect_exit 65 "runs/monday has changed" $renzan train --rerun runs/tuesday --run-dir runs/again2
# So does an attempt after one that was killed before its first checkpoint.
rm -r runs/two/checkpoints runs/two/model
expect_exit 78 "./runs/monday/ has changed since runs/two started" \
  "${tuesday[@]}" --initialize-from ./runs/monday/ --run-dir runs/two
rm -r runs/monday
mv aside runs/monday
"${tuesday[@]}" "${from[@]}" --run-dir runs/two 2>/dev/null
[ "$(sha256_of runs/two)" = $sha256 ] || fail "another model after a restart"

# With the same data and optimizers, the state is exactly the other run's. What begins anew is said.
first=($renzan train config.yaml --set data.train.path=data/monday)
"${first[@]}" "${from[@]}" --run-dir runs/same --set training.max_steps=0 2>/dev/null
expect_exit 1 "differing: 0 of" $renzan checkpoint diff runs/monday runs/same
expect_exit 0 "dense sgd starts anew (the model had adam); tables rowwise_adagrad taken" "${first[@]}" "${from[@]}" --run-dir runs/sgd \
  --set training.max_steps=0 --set optimizer.dense.type=sgd

# Rows follow their values where the vocabulary has them in another order, if their values are there.
(head -1 monday.csv; tail -n +2 monday.csv | tac) >backwards.csv
$renzan data import --format csv --schema schema.yaml --vocabulary threshold:1 --output data/backwards \
  backwards.csv >/dev/null
$renzan data import --format csv --schema schema.yaml --vocabulary-from data/backwards \
  --output data/later.backwards later.csv >/dev/null
backwards=($renzan train config.yaml --set data.train.path=data/backwards --set training.max_steps=0)
"${backwards[@]}" "${from[@]}" --run-dir runs/backwards 2>log.txt || { show_log; fail "backwards"; }
expect_log "454 taken, none new, none dropped"
for metric in auc log_loss; do
  metrics="$(metric_of $metric backwards later.backwards) $(metric_of $metric monday later.monday)"
  [ "${metrics% *}" = "${metrics#* }" ] || fail "$metric of rows in another order: $metrics"
done
mv data/monday aside
expect_exit 66 "--grow and --vocabulary-from the earlier dataset" "${backwards[@]}" "${from[@]}" \
  --run-dir runs/nothing
[ ! -e runs/nothing ] || fail "a run directory without the earlier vocabulary"
mv aside data/monday

# A run in two halves is the whole run, with Adam's bias correction too.
halves=("${first[@]}" --set data.shuffle=false --set training.epochs=1)
"${halves[@]}" --run-dir runs/whole --set data.train.rows=[0,5120] 2>/dev/null
"${halves[@]}" --run-dir runs/half1 --set data.train.rows=[0,2560] 2>/dev/null
"${halves[@]}" --run-dir runs/half2 --set data.train.rows=[2560,3840] --initialize-from runs/half1 \
  2>/dev/null
"${halves[@]}" --run-dir runs/half3 --set data.train.rows=[3840,5120] --initialize-from runs/half2 \
  --workers 2 2>/dev/null
expect_exit 1 "differing: 0 of" $renzan checkpoint diff runs/whole runs/half3

# Another model, other features and other vocabularies are one error each, and leave nothing.
refuses() { # CODE FRAGMENT OPTION...
  local code=$1 fragment=$2
  shift 2
  expect_exit $code "$fragment" "${tuesday[@]}" "${from[@]}" --run-dir runs/refused "$@"
  [ ! -e runs/refused ] || fail "a run directory after: $fragment"
}
refuses 78 "model.type is dlrm there and dlrm_dcnv2 here, and the models have" --set model.type=dlrm_dcnv2
refuses 78 "table 'user' has rows of 8 values there and 4 here" \
  --set model.tables.user.embedding_dim=4
refuses 78 "'top.0.weight' is [16," --set model.top_mlp=[32]
sed 's/item/thing/' schema.yaml >things.yaml
sed 's/item/thing/' tuesday.csv >things.csv
$renzan data import --format csv --schema things.yaml --vocabulary threshold:1 --output data/things \
  things.csv >/dev/null
refuses 78 "table 'item' is missing here" --set data.train.path=data/things
$renzan data import --format csv --schema schema.yaml --vocabulary hash:1000 --output data/hashed \
  tuesday.csv >/dev/null
refuses 78 "feature 'user' has the vocabulary hash:1000" --set data.train.path=data/hashed
expect_exit 64 "--rerun" $renzan train --rerun runs/tuesday "${from[@]}"
sed 's/: log/: standardize/' schema.yaml >scaled.yaml
$renzan data import --format csv --schema scaled.yaml --vocabulary threshold:1 --output data/scaled \
  tuesday.csv >/dev/null
refuses 78 "the transform of 'age' is standardize:" --set data.train.path=data/scaled
from=(--initialize-from data/monday)
refuses 66 "data/monday is not a run, a model or a checkpoint"
from=(--initialize-from schema.yaml)
refuses 66 "schema.yaml"
cp -r runs/monday/model damaged
python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(-9, 2); f.write(b"x")' damaged/table.user.safetensors
expect_exit 65 "damaged" "${tuesday[@]}" --initialize-from damaged --run-dir runs/damaged
[ ! -e runs/damaged/manifest.json ] || fail "a run from a damaged model"
