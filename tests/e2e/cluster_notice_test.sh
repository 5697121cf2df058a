# A spot notice shorter than a job's grace: stop.json tells `renzan train`, whose last checkpoint is
# then an increment although a full one is due and the grace would suffice for it.
source "$(dirname "$0")/cluster_lib.sh" "$@"
# 246 MB, of which training changes three fifths, soon and never more. After a restart the trainer
# assumes a disk of 100 MB/s, so a full checkpoint takes more than 70 % of three seconds.
echo 'columns: {label: {role: label}, x: {role: dense}, id: {role: categorical}}' >columns.yaml
awk 'BEGIN {
  print "label,x,id"
  for (row = 0; row < 15000; row++) printf "%d,%g,%d\n", row % 2, row % 10 / 10, row
}' >rows.csv
$renzan data import --format csv --schema columns.yaml --vocabulary threshold:1 --output data \
  rows.csv >/dev/null
cat >small.yaml <<YAML
data: {train: {path: $work/data, rows: [0, 9000]}}
model: {embedding_dim: 4096, bottom_mlp: [16], top_mlp: [16]}
training: {batch_size: 128, log_every: 50, epochs: 1000000}
YAML

kind_of() { sed -n 's/.*"kind": "\([a-z]*\)".*/\1/p' "$1/manifest.json"; }
kinds_in() { for name in $(checkpoints_in "$1"); do kind_of "$1/$name"; done | xargs; }

# A base and a small increment. A full checkpoint is due once an increment would be larger than
# these two on average.
for steps in 1 2; do
  $renzan train small.yaml --run-dir begun --set training.max_steps=$((steps + 1)) \
    --set checkpoint.every_steps=$steps 2>>log.txt
  rm -r begun/model
done
[ "$(kinds_in begun/checkpoints)" = "incremental full" ] ||
  fail "it begins with $(kinds_in begun/checkpoints)"

cat >cluster.yaml <<YAML
pools: {local: {nodes: 1}}
YAML
$renzan cluster up cluster.yaml >/dev/null
cat >job.yaml <<YAML
grace: 300s
checkpoint: {on_stop: true}
command:
- sh
- -c
- |
  cp -rl $work/begun/. "\$RENZAN_RUN_DIR" && rm -r "\$RENZAN_RUN_DIR/checkpoints"
  cp -rl $work/begun/checkpoints/. "\$RENZAN_CHECKPOINT_DIR"
  exec $renzan train $work/small.yaml
YAML

trained_long() { [ "$(status_of step "state/jobs/$1/run" 2>/dev/null || echo 0)" -ge 150 ]; }
newest_of() {
  local dir=state/jobs/$1/checkpoints
  kind_of "$dir/$(checkpoints_in "$dir" | head -1)"
}

id=$($renzan submit job.yaml)
wait_for trained_long "$id"
$renzan nodes drain local-0 --notice 3s >/dev/null
wait_for is "$id" state pending
$renzan job show "$id" >shown.txt
grep -q "exit status 75" shown.txt || { cat shown.txt >&2; fail "it did not stop in time"; }
[ "$(newest_of "$id")" = incremental ] || { cat shown.txt >&2; fail "a full checkpoint"; }
$renzan job cancel "$id" >/dev/null
$renzan nodes restore local-0 >/dev/null

# With its whole grace, the same job writes a full one.
id=$($renzan submit job.yaml)
wait_for trained_long "$id"
$renzan job cancel "$id" >/dev/null
wait_for is "$id" state cancelled
[ "$(newest_of "$id")" = full ] || fail "an increment, but there was time for a full checkpoint"
