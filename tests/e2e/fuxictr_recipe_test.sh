# examples/fuxictr.yaml: every model that it is for is trained, evaluated and read by predict, from
# three files that share a vocabulary; as the section "From FuxiCTR" of docs/training.md has it.
source "$(dirname "$0")/lib.sh" "$@"
python3 - <<'PY'
import csv, random
draw = random.Random(3)
for part, rows in (("train", 2000), ("valid", 500), ("test", 500)):
    with open(f"{part}.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["clicked", "user_id", "item", "place"])
        for _ in range(rows):
            user, item, place = draw.randrange(60), draw.randrange(80), draw.randrange(5)
            clicked = int(draw.random() < 0.2 + 0.6 * ((user * item) % 3 == 0))
            out.writerow([clicked, f"u{user}", f"i{item}", f"p{place}"])
PY
cat >schema.yaml <<'YAML'
columns:
  clicked: {role: label}
  user_id: {role: categorical, key: true}
  item: {role: categorical}
  place: {role: categorical}
YAML
import() { $renzan data import --format csv --schema schema.yaml "$@" >/dev/null; }
import --vocabulary threshold:2 --output data/train train.csv
for part in valid test; do import --vocabulary-from data/train --output data/$part $part.csv; done

small=(--set training.batch_size=256 --set training.epochs=6 --set model.top_mlp=[32,32])
for model in deepfm wide_deep xdeepfm autoint; do
  $renzan train "$source_root/examples/fuxictr.yaml" --set model.type=$model "${small[@]}" \
    --run-dir $model >log.txt 2>&1 || { show_log; fail "$model"; }
  $renzan eval $model --data data/test --group-by user_id --json >eval.json
  python3 -c 'import json; r = json.load(open("eval.json")); assert r["auc"] > 0.55, r["auc"]' ||
    fail "$model has learned nothing"
done
$renzan predict deepfm --data data/test --output scores.csv --with user_id >/dev/null 2>&1
[ "$(head -1 scores.csv)" = "user_id,score" ] || fail "$(head -1 scores.csv)"
[ "$(wc -l <scores.csv)" -eq 501 ] || fail "not a score for each row"
$renzan train "$source_root/examples/fuxictr.yaml" "${small[@]}" --run-dir again --workers 2 \
  --threads 1 --backend gloo >log.txt 2>&1 || { show_log; fail "two workers"; }
[ "$(sha256_of again)" = "$(sha256_of deepfm)" ] || fail "another model with two workers"
