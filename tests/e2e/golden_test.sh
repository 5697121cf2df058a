# The first ten losses of small models, and the most frequent row of each table after them, equal
# PyTorch's (recorded by tests/golden/make_golden), and so does the loss of predictions where layers
# have running statistics: every model, every dense optimizer, and
# deduplicated sparse updates of rows that occur in many samples of a batch.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden
$renzan data synth --format dataset --seed 42 --rows 640 --output data >/dev/null
for config in "$golden"/*.yaml; do
  name=$(basename "$config" .yaml)
  $renzan train "$config" --run-dir $name 2>log.txt || fail "$name: $(cat log.txt)"
  $renzan eval $name --data data --json >$name.eval.json
  python3 "$golden/compare.py" "$golden/$name.json" $name $name.eval.json
done
