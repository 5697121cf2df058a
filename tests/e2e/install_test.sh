#!/usr/bin/env bash
# The files of `cmake --install` work: the program, its supervisor, manual pages, completions.
source "$(dirname "$0")/lib.sh"
build=$(dirname "$(dirname "$renzan")")
command -v cmake >/dev/null || skip "no cmake"
[ -e "$build/pages/stamp" ] || fail "build the target renzan_pages first"

cmake --install "$build" --prefix "$work/root" >install.txt || { cat install.txt; fail "install"; }
for file in bin/renzan libexec/renzan/renzan-supervisor share/man/man1/renzan.1 \
  share/man/man1/renzan-data-import.1 share/bash-completion/completions/renzan \
  share/zsh/site-functions/_renzan share/doc/renzan/README.md share/doc/renzan/LICENSE \
  share/doc/renzan/docs/cluster.md share/doc/renzan/examples/quickstart.yaml; do
  [ -s "root/$file" ] || fail "no $file"
done

# After moving the tree, the program still finds its supervisor and runs a job.
mv root elsewhere
renzan=$work/elsewhere/bin/renzan
"$renzan" doctor --json | grep -q "$work/elsewhere/libexec/renzan/renzan-supervisor" || fail "no supervisor"
export RENZAN_STATE_DIR=$work/state
"$renzan" cluster up >up.txt
"$renzan" submit --wait -- true || fail "a job of the installed program: exit $?"
"$renzan" cluster down
mv elsewhere/libexec elsewhere/gone
expect_exit 66 "libexec/renzan/renzan-supervisor" "$renzan" cluster up
