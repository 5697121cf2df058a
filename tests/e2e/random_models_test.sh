# A run is a function of configuration, data and seed alone, with the real program: random models,
# trained by two to seven workers under a random plan, killed, and resumed on another backend by
# other workers under another plan, have the SHA-256 of a single local worker's run.
# RENZAN_TEST_SEEDS=FIRST..LAST draws other models.
# renzan/step/random_models_test.cc draws many more, with threads as workers.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 6 --rows 4000 --multi-hot 3 --output data >/dev/null
several_worker_backends | grep -q mpi && last=mpi || last=gloo
seeds=${RENZAN_TEST_SEEDS:-0..3}

draw() { # SEED: writes small.yaml
  python3 - "$1" <<'PY'
import json, random, sys
draw = random.Random(int(sys.argv[1]))
codecs = ["fp32", "fp16", "bf16", "int8", "int4"]
backward = draw.choice(codecs)
sparse = draw.choice(["sgd", "adagrad", "rowwise_adagrad", "adam", "momentum", "ftrl"])
widths = lambda: [draw.randint(1, 40) for _ in range(draw.randint(0, 2))]
config = {
    "seed": draw.randint(0, 1000),
    "data": {"train": {"path": "data", "rows": [0, 3000]}},
    "model": {"type": draw.choice(["dlrm", "dlrm_dcnv2"]),
              "embedding_dim": draw.choice([2, 4, 8, 12, 16]), "bottom_mlp": widths(),
              "top_mlp": widths(), "cross_layers": draw.randint(1, 3),
              "cross_rank": draw.randint(1, 8), "pooling": draw.choice(["sum", "mean"]),
              "dropout": draw.choice([0, 0.2]),
              "tables": {f"C{table}": {"embedding_dim": draw.choice([2, 6, 10, 20])}
                         for table in draw.sample(range(1, 27), draw.choice([0, 0, 3]))}},
    "training": {"batch_size": 8 * draw.randint(4, 30), "epochs": 100, "max_steps": 500},
    "numerics": {"precision": draw.choice(["fp32", "bf16"]),
                 "embedding_precision": draw.choice(["fp32", "fp16", "bf16"]),
                 "row_blocks": draw.choice([1, 4, 8]), "column_blocks": draw.choice([1, 2])},
    "comm": {"forward": draw.choice(codecs), "backward": backward,
             "dense": draw.choice(["fp32", "fp16", "bf16"]),
             "error_feedback_rows": 0 if backward == "fp32" else draw.choice([0, 64])},
    "optimizer": {"dense": {"type": draw.choice(["sgd", "adagrad", "adam"]), "learning_rate": 0.01},
                  "sparse": {"type": sparse, "learning_rate": 0.02,
                             "weight_decay": 0 if sparse == "ftrl" else draw.choice([0, 0.1])},
                  "max_gradient_norm": draw.choice([0, 0.5])},
    "checkpoint": {"every": "0", "every_steps": draw.randint(2, 9)}}
print(json.dumps(config))
PY
}
# random_plan SEED WORKERS: plan.yaml, with every block of every table on a random worker or on all.
random_plan() {
  printf 'workers_per_host: %d\n' $2 >topology.yaml
  rm -f plan.yaml
  $renzan plan small.yaml --topology topology.yaml --output plan.yaml >plan.txt ||
    fail "$(cat small.yaml plan.txt)"
  python3 - $1 $2 <<'PY'
import random, re, sys
seed, workers = map(int, sys.argv[1:])
draw = random.Random(100 * seed + workers)
def blocks(match):
    ranks = []
    for _ in match[1].split(","):  # neighbours are often together
        alike = ranks and draw.random() < 0.4
        ranks.append(ranks[-1] if alike else draw.choice([-1, *range(workers)]))
    return f"workers: {ranks}"
text = open("plan.yaml").read()
open("plan.yaml", "w").write(re.sub(r"workers: \[(.*)\]", blocks, text))
PY
}
has_a_checkpoint_or_ended() {
  compgen -G "run/checkpoints/step-*/manifest.json" >/dev/null || has_ended "$launcher"
}

for seed in $(seq ${seeds%..*} ${seeds#*..}); do
  draw $seed >small.yaml
  rm -rf one run
  $renzan train small.yaml --run-dir one --workers 1 >log.txt 2>&1 || fail "$(cat small.yaml log.txt)"
  expected=$(sha256_of one)
  workers=$((2 + seed * 5 % 6))
  backends=(gloo $last)
  first=${backends[$((seed % 2))]} second=${backends[$(((seed + 1) % 2))]}
  random_plan $seed $workers
  for attempt in 1 2 3; do # a busy machine may let it end before it is killed
    rm -rf run
    with_default_signals $renzan train small.yaml --run-dir run --workers $workers \
      --backend $first --plan plan.yaml >log.txt 2>&1 &
    launcher=$!
    wait_for has_a_checkpoint_or_ended
    for pid in $(workers_of $launcher) $launcher; do kill -KILL "$pid" 2>/dev/null || true; done
    wait $launcher 2>/dev/null || true
    launcher=""
    [ -e run/model ] || break
  done
  [ ! -e run/model ] || fail "model $seed: it was killed too late"
  workers=$((9 - workers))
  random_plan $seed $workers
  $renzan train small.yaml --run-dir run --workers $workers --backend $second --plan plan.yaml \
    >log.txt 2>&1 || fail "$(cat small.yaml plan.yaml log.txt)"
  grep -q "resuming from step-" log.txt || fail "$(cat log.txt)"
  [ "$(sha256_of run)" = "$expected" ] || fail "model $seed: other bits: $(cat small.yaml)"
  echo "model $seed: $expected"
done
