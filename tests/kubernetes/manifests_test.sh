#!/usr/bin/env bash
# deploy/kubernetes: against the schemas of several versions of Kubernetes, and applied to a real
# API server of version 1.20, which has no nodes and so runs nothing.
#   manifests_test.sh [RENZAN]
# With the program RENZAN, the bounds and defaults of GangJobs are compared with those of
# `renzan submit`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
deploy=$(realpath "$here/../../deploy/kubernetes")
cache=${RENZAN_KUBERNETES:-${XDG_CACHE_HOME:-$HOME/.cache}/renzan-kubernetes}
renzan=()
[ $# -eq 0 ] || renzan=("$(realpath "$1")")
work=$(mktemp -d)
trap '"$here/down" "$work/c"; rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }
# A pipe would hide the status of the command that writes into it.
has() { grep -q -- "$1" "$2" || { cat "$2" >&2; fail "$2 lacks: $1"; }; }
# refused FRAGMENT COMMAND...: the command must fail, and say FRAGMENT.
refused() {
  ! "${@:2}" >refused.txt 2>&1 || fail "is not refused: ${*:2}"
  has "$1" refused.txt
}
# eventually WHAT COMMAND...: the command must succeed within half a minute.
eventually() {
  local i
  for ((i = 0; i < 300; i++)); do
    ! "${@:2}" >/dev/null 2>&1 || return 0
    sleep 0.1
  done
  fail "not within half a minute: $1"
}

# --- Without a cluster.

status=0
"$here/validate_manifests" >validate.log 2>&1 || status=$?
case $status in
  0) ;;
  69) echo "without schemas: $(tail -n 1 validate.log)" ;;
  *) cat validate.log >&2; fail "the manifests do not fit the schemas of Kubernetes" ;;
esac
schemas_status=$status

status=0
"$here/up" --user alice c >up.txt 2>up.log || status=$?
if [ $status -eq 69 ]; then
  why=$(tail -n 1 up.log)
  [ $schemas_status -ne 0 ] || why+="; the schemas are right"
  echo "skipped: $why"
  exit 77
fi
[ $status -eq 0 ] || { cat up.log >&2; fail "the cluster does not start"; }
export KUBECONFIG=$work/c/kubeconfig
kubectl() { "$cache/bin/kubectl" --cache-dir="$work/cache" "$@"; }
as_alice() { kubectl --kubeconfig="$work/c/kubeconfig-alice" "$@"; }

# --- Everything is accepted, and accepted again.

kubectl apply -k "$deploy/1.20" >apply.txt || fail "the API server refuses the manifests"
kubectl wait --for=condition=Established --timeout=30s \
  crd/{gangjobs,queues,nodepools,clusterpolicies}.renzan.dev >/dev/null || fail "no definition is established"
for name in gangjobs queues nodepools clusterpolicies; do
  # An ill-formed schema is established, too; only a condition says so.
  types=$(kubectl get crd "$name.renzan.dev" -o 'jsonpath={.status.conditions[*].type}')
  [ "$types" = "NamesAccepted Established" ] || fail "the definition of $name has $types"
done
kubectl apply -k "$deploy/1.20" >again.txt
! grep -v ' unchanged$' again.txt || fail "the second time, something changes"
pods() { [ "$(kubectl -n renzan-system get pods -o name | wc -l)" -eq 2 ]; }
eventually "the Deployment has two pods" pods
budget() {
  [ "$(kubectl -n renzan-system get pdb renzan-controller \
    -o 'jsonpath={.status.expectedPods}')" = 2 ]
}
eventually "the PodDisruptionBudget is about both" budget

# --- The API.

"$here/gang_job_schema_test.py" c/kubeconfig "${renzan[@]}"
"$here/policy_schema_test.py" c/kubeconfig
"$here/rights_test.py" c/kubeconfig

for file in "$deploy"/examples/*.yaml; do
  kubectl apply -f "$file" >/dev/null || fail "the API server refuses $file"
done
"$here/gang_job_schema_test.py" --pods-of-all c/kubeconfig

# --- What a user sees.

kubectl get gj sleep -o json >sleep.json
python3 - <<'PYTHON'
import json
job = json.load(open("sleep.json"))
job["status"] = {"phase": "running", "replicas": 2, "attempts": 1, "gpus": 16,
                 "startTime": job["metadata"]["creationTimestamp"],
                 "message": "attempt 0 on n1 (2 workers)",
                 "facts": {"id": 7, "preemptions": 3, "failures": 1}}
json.dump(job, open("sleep.json", "w"))
PYTHON
kubectl replace --raw /apis/renzan.dev/v1alpha1/namespaces/default/gangjobs/sleep/status \
  -f sleep.json >/dev/null
kubectl get gangjobs >get.txt
columns='NAME +QUEUE +PRIORITY +STATE +WORKERS +WANTED +GPUS +STARTED +AGE +WHERE OR WHY'
grep -qE "^$columns *$" get.txt || { cat get.txt >&2; fail "the columns are wrong"; }
grep -qE '^sleep +default +0 +running +2 +2 +16 +[0-9]+s +[0-9]+s +attempt 0 on n1 \(2 workers\)$' get.txt ||
  { cat get.txt >&2; fail "the line of a running job is wrong"; }
kubectl get gj -o wide >wide.txt
grep -qE '^sleep .* 7 +3 +1$' wide.txt || { cat wide.txt >&2; fail "the wide columns are wrong"; }
kubectl get all >all.txt
has gangjob.renzan.dev/sleep all.txt
kubectl get rq >queues.txt
grep -qE '^default +16 +32 +[0-9]+s' queues.txt || { cat queues.txt >&2; fail "a queue's line"; }
kubectl explain gangjob.spec.checkpoint >explain.txt
has "exits with status 75" explain.txt
kubectl explain gangjob.status.facts >explain.txt
has "another replica" explain.txt
kubectl explain queue.spec >explain.txt
has "reclaimed" explain.txt
# kubectl itself reports misspelt fields before it sends them.
sed 's/replicas:/replica:/' "$deploy/examples/sleep.yaml" >misspelt.yaml
refused 'unknown field "replica"' kubectl apply -f misspelt.yaml

# --- As a user with `edit` in the namespace ads, which rights_test.py gave alice.

sed 's/name: sleep/name: nap/' "$deploy/examples/sleep.yaml" >nap.yaml
as_alice -n ads apply -f nap.yaml >/dev/null || fail "alice may not submit"
as_alice -n ads get gj nap >/dev/null || fail "alice does not see her job"
refused Forbidden as_alice -n default apply -f nap.yaml
refused Forbidden as_alice apply -f "$deploy/examples/queue.yaml"
[ "$(as_alice -n ads auth can-i update gangjobs --subresource=status || true)" = no ] ||
  fail "alice may write a status"
controller=system:serviceaccount:renzan-system:renzan-controller
[ "$(kubectl auth can-i --all-namespaces --as=$controller create pods)" = yes ] ||
  fail "the controller may not create pods"
[ "$(kubectl auth can-i --all-namespaces --as=$controller get secrets || true)" = no ] ||
  fail "the controller may read secrets"

# --- Rights in some namespaces only, by the commands that the manifest names.

commands=$(sed -n 's/^#   \(kubectl .*\)/\1/p; s/^#     \(--.*\)/\1/p' \
  "$deploy/controller-by-namespace/kustomization.yaml" | sed "s|deploy/kubernetes|$deploy/1.20|
    s|/1.20/crds|/crds|")
[ "$(wc -l <<<"$commands")" -eq 4 ] || fail "the commands of controller-by-namespace: $commands"
eval "$commands" >by_namespace.txt
"$here/rights_test.py" c/kubeconfig --by-namespace

# A busy server may answer too late: then kubectl asks again, and what is gone is not found.
kubectl delete --ignore-not-found -k "$deploy/1.20" >/dev/null || fail "it cannot be removed"
