# Sourced by the end-to-end tests of the job system, which sources lib.sh: the daemon's state
# directory is `state`, and the daemon and its jobs end with the test.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" "$@"
export RENZAN_STATE_DIR=$work/state
unset RENZAN_SOCKET
trap '$renzan cluster down --stop-jobs >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

# job_field ID EXPRESSION: a Python expression of the keys of `job show`, such as: state, workers
job_field() {
  $renzan job show "$1" --json | python3 -c 'import json, sys
print(eval(sys.argv[1], json.load(sys.stdin)))' "$2"
}
# is ID EXPRESSION VALUE
is() { [ "$(job_field "$1" "$2")" = "$3" ]; }
expect_field() { is "$1" "$2" "$3" || { $renzan job show "$1" >&2; fail "job $1: $2 is not $3"; }; }

# is_explained ID: in why.txt; not while the job changes, which may take a while on a busy machine.
is_explained() { $renzan job explain "$1" >why.txt && ! grep -q "it is changing: ask again" why.txt; }

# expect_explanation ID FRAGMENT
expect_explanation() {
  wait_for is_explained "$1"
  grep -qF -- "$2" why.txt || { cat why.txt >&2; fail "job $1 is not explained: $2"; }
}

# node_field NAME KEY: as JSON.
node_field() {
  $renzan nodes --json | python3 -c 'import json, sys
print(*[json.dumps(node[sys.argv[2]]) for node in json.load(sys.stdin)["nodes"]
        if node["name"] == sys.argv[1]])' "$1" "$2"
}
