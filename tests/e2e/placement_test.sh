# Placement never changes arithmetic: the same SHA-256 over workers x threads x backends, with the
# real program and the real backends. Covers every model, feature type, optimizer and codec; unit
# tests with ranks as threads cover their combinations.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 6 --rows 4000 --output one_hot >/dev/null
$renzan data synth --format dataset --seed 6 --rows 4000 --multi-hot 5 --output multi_hot >/dev/null
backends=$(several_worker_backends)

check() { # NAME DATA OVERRIDE...
  local name=$1 data=$2 expected="" sha workers threads backend
  shift 2
  small_config "$data"
  local set=()
  for override in training.max_steps=6 "$@"; do set+=(--set "$override"); done
  for workers in 1 2 3 4; do
    for threads in 1 2; do
      for backend in $([ $workers = 1 ] && echo local || echo $backends); do
        rm -rf run
        # The planner would replicate such small tables.
        $renzan train small.yaml --run-dir run --workers $workers --threads $threads \
          --set sharding.default=$([ $threads = 1 ] && echo table_wise || echo auto) \
          --backend $backend "${set[@]}" >log.txt 2>&1 || { cat log.txt >&2; fail "$name"; }
        sha=$(sha256_of run)
        : "${expected:=$sha}"
        if [ "$sha" != "$expected" ]; then
          fail "$name: different bits with $workers workers, $threads threads, $backend"
        fi
      done
    done
  done
  echo "$name: $expected"
}

check "dlrm, one-hot, sgd, fp32" one_hot
check "dlrm, multi-hot, adam + row-wise adagrad, fp16/bf16" multi_hot \
  optimizer.dense.type=adam optimizer.sparse.type=rowwise_adagrad comm.forward=fp16 \
  comm.backward=bf16 comm.dense=bf16
check "dcnv2, one-hot, adagrad, bf16, bf16/fp16" one_hot model.type=dlrm_dcnv2 \
  numerics.precision=bf16 numerics.embedding_precision=fp16 \
  optimizer.dense.type=adagrad optimizer.sparse.type=adagrad comm.forward=bf16 \
  comm.backward=fp16 comm.dense=fp16
check "dlrm, multi-hot, dropout, weight decay, clipping, bf16" multi_hot model.dropout=0.2 \
  numerics.precision=bf16 numerics.embedding_precision=bf16 \
  optimizer.dense.weight_decay=0.1 optimizer.sparse.weight_decay=0.1 \
  optimizer.max_gradient_norm=0.05 training.eval_every=2 training.keep_best=true
check "dcnv2, multi-hot, mean pooling, sgd, fp32" multi_hot model.type=dlrm_dcnv2 \
  model.pooling=mean
