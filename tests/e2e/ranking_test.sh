# Ranking all items by two towers: HR, NDCG and MRR equal those of a plain twin, which asks `predict`
# for the score of every pair of an evaluated row and an item, and are the same for any workers,
# threads and batches. Also what cannot be ranked.
source "$(dirname "$0")/lib.sh" "$@"
cat >schema.yaml <<'YAML'
columns:
  label: {role: label}
  user: {role: categorical}
  age: {role: dense}
  clicked: {role: multi_hot, table: item, max_length: 4, keep: newest}
  item: {role: categorical}
  tags: {role: multi_hot}
YAML
# Rows of users and items of the same third are mostly clicks. Some items are only in the last rows,
# some have other tags there, which makes them other items, and no two are equal.
cat >clicks.py <<'PYTHON'
import random
draw = random.Random(5)
print("label,user,age,clicked,item,tags")
for row in range(900):
    user, item = draw.randrange(30), draw.randrange(34 if row < 720 else 37)
    likely = 0.85 if user % 3 == item % 3 else 0.1
    clicked = "|".join(f"i{(user + 3 * k) % 30}" for k in range(draw.randrange(6)))
    tags = "|".join(f"t{t}" for t in sorted({item % 3, item % 5 + 3}))
    if row >= 720 and item < 2:
        tags = "t0"
    print(f"{int(draw.random() < likely)},u{user},{draw.random():.3f},{clicked},i{item},{tags}")
PYTHON
python3 clicks.py >clicks.csv
import() {  # NAME CSV OPTION...
  $renzan data import --format csv --schema schema.yaml --output "$1" "$2" "${@:3}" >/dev/null \
    2>log.txt || fail "$(cat log.txt)"
}
import clicks clicks.csv --vocabulary threshold:1 --unseen 0
config() {  # DATA: towers.yaml
  cat >towers.yaml <<YAML
seed: 3
data: {train: {path: $1, rows: [0, 720]}, eval: {path: $1, rows: [720, 900]}}
model:
  type: blocks
  embedding_dim: 6
  blocks:
    history: {type: pool, inputs: [embeddings.clicked]}
    user_input: {type: concat, inputs: [embeddings.user, history, dense]}
    user: {type: mlp, inputs: [user_input], layers: [12, 7], linear_output: true}
    item_input: {type: concat, inputs: [embeddings.item, embeddings.tags]}
    item: {type: mlp, inputs: [item_input], layers: [7], linear_output: true}
    match: {type: match, inputs: [user, item], temperature: 0.5}
training: {batch_size: 48, epochs: 20, log_every: 100}
optimizer: {dense: {type: adam, learning_rate: 0.01}, sparse: {type: adam, learning_rate: 0.01}}
numerics: {virtual_workers: 4}
YAML
}
config clicks
$renzan train towers.yaml --run-dir run 2>log.txt || fail "$(cat log.txt)"
for workers in 2 3; do
  $renzan train towers.yaml --workers $workers --run-dir run$workers 2>log.txt ||
    fail "$(cat log.txt)"
  [ "$(sha256_of run$workers)" = "$(sha256_of run)" ] || fail "other bits with $workers workers"
done

ranking() {  # OPTION...: the ranking of `run` as JSON
  $renzan eval run --ranking 1,5,20 --json "$@" 2>log.txt || fail "$(cat log.txt)"
}
ranking >one.json
expect_log "ranks the items of rows 0 to 720 of clicks and of the evaluated rows"
python3 - <<'PYTHON' || fail "$(cat one.json)"
import json
its = json.load(open("one.json"))["ranking"]
# Items 0 and 1 have other tags in the evaluated rows, and three items are only there.
assert its["candidates"] == 39 and its["only_in_evaluated_rows"] == 5, its
assert list(its) == ["candidates", "only_in_evaluated_rows", "ranked_rows", "hr@1", "ndcg@1", "hr@5",
                     "ndcg@5", "hr@20", "ndcg@20", "mrr"], its
# It has learned which third of the items a user clicks.
assert its["hr@20"] > 0.65 and its["mrr"] > 0.13, its
PYTHON
# Without a communicator, and with the exchanges of several workers.
for options in "--threads 1" "--threads 3" "--set training.batch_size=4" "--workers 2" \
  "--workers 3 --threads 2" "--workers 2 --set training.batch_size=600"; do
  ranking $options >other.json
  cmp one.json other.json || fail "another result with $options"
done
$renzan eval run --ranking 5 >text.txt 2>/dev/null
for line in "candidates          39  (5 only in the evaluated rows)" "HR@5                0\." "NDCG@5 " \
  "MRR "; do
  grep -q "$line" text.txt || fail "no '$line' in: $(cat text.txt)"
done

# The twin: all pairs of a positive row's columns and an item's.
cat >pairs.py <<'PYTHON'
import csv
rows = list(csv.DictReader(open("clicks.csv")))
items = list(dict.fromkeys((row["item"], row["tags"]) for row in rows))
positive = [row for row in rows[720:] if row["label"] == "1"]
with open("pairs.csv", "w") as file:
    print(",".join(rows[0]), file=file)
    for row in positive:
        for item, tags in items:
            print(",".join({**row, "item": item, "tags": tags}.values()), file=file)
with open("own.txt", "w") as file:
    for row in positive:
        print(items.index((row["item"], row["tags"])), file=file)
PYTHON
python3 pairs.py
import pairs pairs.csv --vocabulary-from clicks
$renzan predict run --data pairs --output scores.npy 2>/dev/null
cat >compare.py <<'PYTHON'
import json, math, sys
import numpy as np
its = json.load(open(sys.argv[1]))["ranking"]
own = np.loadtxt("own.txt", dtype=int)
score = np.load("scores.npy").astype(float).reshape(len(own), its["candidates"])
assert its["ranked_rows"] == len(own) > 50
best = score[np.arange(len(own)), own][:, None]
# Scores that differ only in their last bits may be in either order.
ranks = [1 + (score > best * (1 + margin)).sum(1) for margin in (1e-5, -1e-5)]
ranks[1] -= 1  # the item itself
assert (ranks[0] != ranks[1]).mean() < 0.05
def between(key, f):
    low, high = sorted(np.mean([f(int(rank)) for rank in its]) for its in ranks)
    assert low - 1e-12 <= its[key] <= high + 1e-12, (key, low, high, its[key])
for k in 1, 5, 20:
    between(f"hr@{k}", lambda rank: rank <= k)
    between(f"ndcg@{k}", lambda rank: (rank <= k) / math.log2(1 + rank))
between("mrr", lambda rank: 1 / rank)
PYTHON
python3 compare.py one.json || fail "different from the twin: $(cat one.json)"

# Other items: those of the first rows, and those that are evaluated.
head -11 clicks.csv >few.csv
import few few.csv --vocabulary-from clicks
ranking --items few >few.json
# Where items are from does not matter, and only those of the evaluated rows are counted apart.
as_one() { sed 's/"only_in_evaluated_rows":0,/"only_in_evaluated_rows":5,/' "$1" | cmp one.json -; }
ranking --items clicks --rows 720 900 >same.json
as_one same.json || fail "other ranks with all items by name"
python3 - <<'PYTHON' || fail "$(cat few.json)"
import json
few, all = (json.load(open(name))["ranking"] for name in ("few.json", "one.json"))
assert few["candidates"] <= all["candidates"] and few["only_in_evaluated_rows"] > 20, few
assert few["ranked_rows"] == all["ranked_rows"]
PYTHON

# Items that the model does not know are one candidate, also where the vocabulary has grown.
sed '2,99s/,i[34],/,new1,/; 100,$s/,i[34],/,new2,/' clicks.csv >new.csv
import tuesday new.csv --vocabulary-from clicks --grow
import grown new.csv --vocabulary-from tuesday
import unseen new.csv --vocabulary-from clicks
for data in grown unseen; do
  $renzan eval run --data $data --ranking 5 --items $data --json >$data.json 2>log.txt ||
    fail "$(cat log.txt)"
done
cmp grown.json unseen.json || fail "other ranks where the vocabulary has grown"
$renzan eval run --data grown --ranking 5 --items grown --workers 2 --json >two.json 2>log.txt ||
  fail "$(cat log.txt)"
cmp grown.json two.json || fail "other ranks with two workers"
[ "$(grep -c "the model does not know (1\." log.txt)" = 1 ] || fail "$(cat log.txt)"

# If all scores are equal, every item ranks last.
$renzan train towers.yaml --run-dir zeros --set training.max_steps=0 \
  --set model.initial_values=zeros 2>log.txt || fail "$(cat log.txt)"
$renzan eval zeros --ranking 38 --json 2>/dev/null >zeros.json
python3 - <<'PYTHON' || fail "$(cat zeros.json)"
import json
its = json.load(open("zeros.json"))["ranking"]
assert its["hr@38"] == its["ndcg@38"] == 0 and abs(its["mrr"] - 1 / 39) < 1e-12, its
PYTHON

# Evaluations during training measure the same, and decide by it which model is kept: the same one
# with more workers, and if the run is stopped.
watch=(--set training.ranking='[5, 20]' --set training.eval_every=40 --set training.keep_best=true
  --set training.early_stopping.metric=ndcg)
$renzan train towers.yaml --run-dir best "${watch[@]}" 2>log.txt || fail "$(cat log.txt)"
expect_log "; of 39 items: HR@5 0."
step=$(sed -n 's/.*the model is the one of step \([0-9]*\), with the best ndcg .*/\1/p' log.txt)
[ -n "$step" ] || fail "the last model is the best: $(cat log.txt)"
$renzan eval best --ranking 5,20 --json >best.json 2>/dev/null
python3 - "$step" <<'PYTHON' || fail "$(cat best.json best/metrics.jsonl)"
import json, sys
best = json.load(open("best.json"))["ranking"]
found = [e for e in map(json.loads, open("best/metrics.jsonl")) if "eval/ndcg@5" in e]
assert len(found) == 8 and max(found, key=lambda e: e["eval/ndcg@5"])["step"] == int(sys.argv[1])
(its,) = (e for e in found if e["step"] == int(sys.argv[1]))
for key in "hr@5", "ndcg@5", "hr@20", "ndcg@20", "mrr":
    assert its["eval/" + key] == best[key], (key, its, best)
PYTHON
$renzan train towers.yaml --workers 3 --run-dir best3 "${watch[@]}" --set training.max_steps=100 \
  2>log.txt || fail "$(cat log.txt)"
$renzan train towers.yaml --workers 2 --run-dir best3 "${watch[@]}" 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of best3)" = "$(sha256_of best)" ] || fail "another best model: $(cat log.txt)"

# A plan says what that takes: all of the data's 39 items for each positive row.
$renzan plan towers.yaml "${watch[@]}" --json >plan.json 2>log.txt || fail "$(cat log.txt)"
$renzan plan towers.yaml --json >plain.json 2>log.txt || fail "$(cat log.txt)"
$renzan plan towers.yaml "${watch[@]}" >plan.txt 2>&1 || fail "$(cat plan.txt)"
python3 - <<'PYTHON' || fail "$(cat plan.json plan.txt)"
import json
plan, plain, best = (json.load(open(name)) for name in ("plan.json", "plain.json", "best.json"))
(its,) = plan["ranking"]["outputs"]
assert plain["ranking"] is None and its["output"] == "", plan
assert its["candidates"] == 39 and its["rows"] == best["ranking"]["ranked_rows"], (its, best)
assert its["flops_per_row"] == 2 * 39 * its["width"] > 0, its
# Candidates with their texts and rows, and their vectors.
assert plan["ranking"]["memory_bytes"] > 39 * 4 * its["width"], plan
assert plan["memory_bytes"] == plain["memory_bytes"] + plan["ranking"]["memory_bytes"]
text = open("plan.txt").read()
assert f"{its['rows']} rows, each among 39 candidates of width {its['width']}" in text, text
PYTHON
expect_exit 78 "training.ranking: there are fewer candidates than 40" \
  $renzan plan towers.yaml --set training.ranking='[40]'
features='{dense: [age], categorical: [user, clicked, item, tags], num_embeddings: [99, 41, 41, 9],
  multi_hot: [clicked, tags], tables: [user, item, item, tags], max_lengths: [0, 4, 0, 0]}'
$renzan plan towers.yaml "${watch[@]}" --set "data={eval: {path: clicks}}" \
  --set "features=$features" >plan.txt 2>&1 || fail "$(cat plan.txt)"
grep -q "its candidates and their memory are unknown without data.train.path" plan.txt ||
  fail "$(cat plan.txt)"

# The same where the learning rates depend on it.
slower=(--set training.ranking='[5]' --set training.eval_every=20
  --set 'optimizer.schedule={plateau: {metric: mrr, patience: 1, factor: 0.5}}')
$renzan train towers.yaml --run-dir slower "${slower[@]}" 2>log.txt || fail "$(cat log.txt)"
expect_log "no improvement for 1 evaluation: the learning rates are"
$renzan train towers.yaml --run-dir slower2 --workers 2 "${slower[@]}" --set training.max_steps=90 \
  2>log.txt || fail "$(cat log.txt)"
expect_exit 78 "training.ranking" $renzan train towers.yaml --run-dir slower2 "${slower[@]}" \
  --set training.ranking='[7]'
$renzan train towers.yaml --run-dir slower2 "${slower[@]}" 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of slower2)" = "$(sha256_of slower)" ] || fail "other learning rates: $(cat log.txt)"

# Of several outputs, those that are a match.
sed 's/^    match: \(.*\)/    match: \1\
    both: {type: concat, inputs: [user, item]}\
    plain: {type: mlp, inputs: [both], layers: [1], linear_output: true}\
  outputs: {fits: {block: match, label: label}, likes: {block: plain, label: label}}/' \
  towers.yaml >outputs.yaml
$renzan train outputs.yaml --run-dir outputs --set numerics.precision=bf16 2>log.txt ||
  fail "$(cat log.txt)"
for workers in 1 2; do
  $renzan eval outputs --ranking 5 --json --workers $workers 2>/dev/null >outputs.$workers
done
cmp outputs.1 outputs.2 || fail "other ranks with two workers"
python3 - <<'PYTHON' || fail "$(cat outputs.1)"
import json
outputs = json.load(open("outputs.1"))["outputs"]
assert outputs["fits"]["ranking"]["candidates"] == 39 and "ranking" not in outputs["likes"], outputs
PYTHON
expect_exit 78 "training.early_stopping.output: 'likes' is no match of a query and an item" \
  $renzan train outputs.yaml --run-dir none "${watch[@]}" --set training.early_stopping.output=likes

# What cannot be ranked.
expect_exit 64 "--ranking: there are fewer candidates than 40, only 39 distinct items: give smaller ranks" \
  $renzan eval run --ranking 5,40
expect_exit 64 "ranking" $renzan eval run --ranking 0
expect_exit 64 "ranking" $renzan eval run --ranking few
expect_exit 64 "--items requires --ranking" $renzan eval run --items few
{ head -1 clicks.csv; grep -m 20 '^0' clicks.csv; } >negative.csv
import negative negative.csv --vocabulary-from clicks
expect_exit 65 "negative: no evaluated row has the label 1" \
  $renzan eval run --data negative --ranking 5
sed 's/,age,/,years,/' clicks.csv >years.csv
sed 's/  age:/  years:/' schema.yaml >years.yaml
$renzan data import --format csv --schema years.yaml --output years years.csv >/dev/null 2>&1
expect_exit 78 "years: the training data has the dense feature 'age', this dataset does not" $renzan eval run --ranking 5 --items years
expect_exit 66 "nowhere" $renzan eval run --ranking 5 --items nowhere
mv clicks elsewhere
expect_exit 66 "name others with --items DIR" $renzan eval run --data elsewhere --ranking 5
$renzan eval run --data elsewhere --rows 720 900 --ranking 1,5,20 --items elsewhere --json \
  >moved.json 2>/dev/null
as_one moved.json || fail "other ranks of data elsewhere"
mv elsewhere clicks
sed 's/inputs: \[embeddings.item, embeddings.tags\]/inputs: [embeddings.item, embeddings.tags, dense]/' \
  towers.yaml >shared.yaml
$renzan train shared.yaml --run-dir shared --set training.max_steps=1 2>/dev/null
expect_exit 78 "block match: its query and its item both depend on the dense features" \
  $renzan eval shared --ranking 5
sed 's/match: {type: match,\(.*\), temperature: 0.5}/match: {type: multiply,\1}\
    logit: {type: mlp, inputs: [match], layers: [1], linear_output: true}/' towers.yaml >other.yaml
$renzan train other.yaml --run-dir other --set training.max_steps=1 2>log.txt || fail "$(cat log.txt)"
expect_exit 78 "--ranking: this model cannot rank items" $renzan eval other --ranking 5
expect_exit 78 "training.ranking: this model cannot rank items: that takes sasrec, hstu or two_tower" \
  $renzan train other.yaml --run-dir none --set training.ranking='[5]'
expect_exit 78 "training.ranking: there are fewer candidates than 40, only 39 distinct items" \
  $renzan train towers.yaml --run-dir none --set training.ranking='[40]'
[ ! -e none ] || fail "a run directory was left behind"

# Combinations with the row for unseen values, which lookups of training data read by chance, are no
# items; and ratings are no positives.
import replaced clicks.csv --vocabulary threshold:1 --unseen 0.3
import whole clicks.csv --vocabulary-from replaced
config replaced
$renzan train towers.yaml --run-dir replaced.run --set data.eval.path=whole \
  --set training.max_steps=5 2>log.txt || fail "$(cat log.txt)"
$renzan eval replaced.run --ranking 5 --json 2>/dev/null | python3 -c '
import json, sys
ranking = json.load(sys.stdin)["ranking"]
assert ranking["candidates"] == 39, ranking' || fail "replaced lookups are items"
sed 's/label: {role: label}/label: {role: label, values: number}/' schema.yaml >numbers.yaml
$renzan data import --format csv --schema numbers.yaml --output numbers clicks.csv >/dev/null 2>&1
config numbers
$renzan train towers.yaml --run-dir numbers.run --set training.max_steps=1 2>log.txt ||
  fail "$(cat log.txt)"
expect_exit 78 "items are ranked for rows with the label 1, but 'label' is a number" \
  $renzan eval numbers.run --ranking 5
