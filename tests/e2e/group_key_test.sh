# Group AUC by the texts of a key: a column that is no feature, and users that training has not
# seen. Compared with Python, on any workers, threads and backends.
source "$(dirname "$0")/lib.sh" "$@"
python3 - <<'PY'
import random
random.seed(11)
with open("clicks.csv", "w") as out:
    print("click,x,country,user,session,note", file=out)
    for row in range(5000):
        user = int(300 * random.random() ** 2)
        x = random.random()
        click = int(random.random() < 0.1 + 0.5 * x * (user % 3 > 0))
        session = random.choice(["", "Ünal", f"s{user}", f"s{row % 40}"])
        print(f"{click},{x:.4f},c{user % 7},u{user},{session},n", file=out)
PY
cat >schema.yaml <<'YAML'
columns:
  click: {role: label}
  x: {role: dense}
  country: {role: categorical}
  user: {role: categorical, key: true}
  session: {role: key}
  note: {role: skip}
YAML
imported() {  # SCHEMA OUTPUT
  $renzan data import clicks.csv --format csv --schema $1 --vocabulary threshold:1 \
    --split group:user@0.4 --shard-rows 700 --output $2 >/dev/null 2>&1
}
imported schema.yaml data
sed -e 's/, key: true//' -e '/session/s/key/skip/' schema.yaml >plain.yaml
imported plain.yaml plain
small_config data/train
config() {  # TRAINING EVALUATED
  sed "s|^data:.*|data: {train: {path: $1}, eval: {path: $2}}|" small.yaml
}
config data/train data/test >keyed.yaml
config plain/train plain/test >plain.run.yaml
by_group=(--set training.eval_every=2 --set training.keep_best=true
  --set training.early_stopping.metric=group_auc --set optimizer.schedule.plateau.metric=group_auc
  --set optimizer.schedule.plateau.patience=1)
train() {  # RUN WORKERS THREADS BACKEND OVERRIDE...
  $renzan train keyed.yaml "${by_group[@]}" --run-dir $1 --workers $2 --threads $3 --backend $4 \
    "${@:5}" 2>log.txt || fail "$(cat log.txt)"
}
without_times() {  # RUN
  grep '"eval/' $1/metrics.jsonl | sed 's/"time":[0-9.]*,//'
}
for setting in "1 1 local" "1 2 local" "2 1 gloo" "3 2 mpi" "3 1 gloo"; do
  read -r workers threads backend <<<"$setting"
  run=by.$workers.$threads
  train $run $workers $threads $backend --set training.group_by=session
  expect_log "groups by the texts of 'session'"
  expect_log "group AUC by session"
  cmp <(without_times by.1.1) <(without_times $run) || fail "other bits: $setting"
  [ "$(sha256_of by.1.1)" = "$(sha256_of $run)" ] || fail "other models: $setting"
done
# Also after an interruption.
train resumed 2 1 gloo --set training.group_by=session --set training.max_steps=4
train resumed 1 1 local --set training.group_by=session
expect_log "resum"
[ "$(sha256_of by.1.1)" = "$(sha256_of resumed)" ] || fail "another model after an interruption"
for setting in "1 local" "2 gloo" "3 mpi"; do
  read -r workers backend <<<"$setting"
  for column in session user; do
    $renzan eval by.1.1 --group-by $column --top 1000 --json --workers $workers \
      --backend $backend >$column.$workers 2>log.txt || fail "$(cat log.txt)"
    ! grep -qF "in the schema" log.txt || fail "$(cat log.txt)"
    cmp $column.1 $column.$workers || fail "another result on $workers workers"
  done
done
$renzan predict by.1.1 --data data/test --with user,session,click --output scores.csv 2>/dev/null
python3 - <<'PY' || fail "different from Python"
import collections, csv, json, math
rows = list(csv.DictReader(open("scores.csv", newline="")))
for column in "session", "user":
    groups = json.load(open(f"{column}.1"))["group_by"]
    texts = collections.defaultdict(list)
    for row in rows:
        texts[row[column]].append(row)
    assert groups["groups"] == len(texts) == len(groups["largest"]) > 20, groups["groups"]
    assert "" in texts if column == "session" else len(texts) > 80
    total = weight = 0
    for group in groups["largest"]:
        assert set(group) == {"value", "rows", "positives", "auc", "log_loss", "calibration"}, group
        its = texts.pop(group["value"])
        of = {y: [float(row["score"]) for row in its if float(row["click"]) == y] for y in (0, 1)}
        assert (group["rows"], group["positives"]) == (len(its), len(of[1]))
        if not of[0] or not of[1]:
            assert group["auc"] is None
            continue
        won = sum((p > n) + 0.5 * (p == n) for p in of[1] for n in of[0])
        auc = won / len(of[0]) / len(of[1])
        # Different logits may give the same probability in float32.
        assert abs(auc - group["auc"]) < 1e-3, (group, auc)
        total, weight = total + auc * len(its), weight + len(its)
    assert not texts and weight == groups["rows_with_both_classes"]
    assert math.isclose(total / weight, groups["group_auc"], abs_tol=1e-4), (total, weight, groups)
seen = [json.loads(line).get("eval/group_auc") for line in open("by.1.1/metrics.jsonl")]
seen = [value for value in seen if value is not None]
best = json.load(open("session.1"))["group_by"]["group_auc"]
assert len(set(seen)) > 2 and max(seen) == best, (seen, best)
PY
$renzan eval by.1.1 --group-by session --rows 100 900 >shown.txt 2>/dev/null
for text in "Ünal" "(empty)" "groups by session"; do
  grep -qF "$text" shown.txt || fail "no $text: $(cat shown.txt)"
done

# Without the key, all test users are one group, which is said once.
advice="100 % of $(($(wc -l <scores.csv) - 1)) rows that are grouped by 'user' have values that its vocabulary lacks"
$renzan train plain.run.yaml --set training.group_by=user --set training.eval_every=2 \
  --run-dir one 2>log.txt || fail "$(cat log.txt)"
[ "$(grep -cF "$advice" log.txt)" = 1 ] || fail "$advice: $(cat log.txt)"
expect_log 'import plain/test with `key: true` for '"'user'"
$renzan eval one --group-by user >shown.txt 2>log.txt
[ "$(grep -cF "$advice" log.txt)" = 1 ] || fail "$advice: $(cat log.txt)"
grep -qF "of 1 group by user" shown.txt || fail "$(cat shown.txt)"
$renzan eval one --group-by country >/dev/null 2>log.txt
! grep -qF "vocabulary lacks" log.txt || fail "$(cat log.txt)"

refused() {  # STATUS FRAGMENT COMMAND...: and nothing is written
  expect_exit "$@" --run-dir refused
  [ ! -e refused ] || fail "a refused run left a directory"
}
refused 78 "training.group_by: sesion: data/test has no such column (did you mean 'session'?); choose a one-hot feature: country, or a key: user, session" \
  $renzan train keyed.yaml --set training.group_by=sesion
config data/train plain/test >mixed.yaml
refused 78 "training.group_by: session: this is a key of data/train, but not of plain/test: import it with the same schema; choose a one-hot feature: country, user" \
  $renzan train mixed.yaml --set training.group_by=session
expect_exit 64 "--group-by session: plain/test has no such column" \
  $renzan eval by.1.1 --data plain/test --group-by session

# Texts decide, so a model that was chosen by them is not taken for one that was chosen by others,
# and workers must have the same.
cp -r data/test data/kept
sed -E '1!s/^(([^,]*,){4})s/\1t/; s/,Ünal,/,s1,/' clicks.csv >other.csv
$renzan data import other.csv --format csv --schema schema.yaml --vocabulary threshold:1 \
  --split group:user@0.4 --shard-rows 700 --output other >/dev/null 2>&1
rm -r data/test
cp -r other/test data/test
expect_exit 78 "or other texts of the key training.group_by), and its learning rates" $renzan train keyed.yaml \
  "${by_group[@]}" --set training.group_by=session --run-dir by.1.1
sed -i 's/s1/s2/' data/test/shard-00000/session.key.npy
refused 65 "session.key.npy is corrupt" $renzan train keyed.yaml --set training.group_by=session
for workers in 1 2; do
  expect_exit 65 "session.key.npy is corrupt" \
    $renzan eval by.1.1 --group-by session --workers $workers
done
