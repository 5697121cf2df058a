#!/usr/bin/env bash
# Help: verbs in groups, suggestions for misspelt words, the version, manual pages, and completion in
# bash and zsh.
source "$(dirname "$0")/lib.sh"

# `renzan`, `renzan help` and `renzan --help` print the same text, with every verb in a group.
"$renzan" >alone.txt || fail "renzan alone: exit $?"
"$renzan" help >help.txt
"$renzan" --help >flag.txt
cmp alone.txt help.txt
cmp alone.txt flag.txt
for group in Training Data Jobs Clusters 'This machine and this program'; do
  grep -qx "$group:" help.txt || fail "no group $group"
done
! grep -q '^Subcommands:' help.txt || fail "a verb without a group"
for verb in train run eval predict checkpoint data submit jobs job pod-run cluster nodes simulate doctor help; do
  [ "$(grep -c "^  $verb  *[A-Z]" help.txt)" = 1 ] || fail "$verb is not listed exactly once"
done
"$renzan" help data import >import.txt
grep -q 'renzan data import \[OPTIONS\]' import.txt || fail "help of a sub-verb"

# A misspelt word.
expect_exit 64 "renzan has no verb 'trian': did you mean 'train'?" "$renzan" trian x.yaml
expect_exit 64 "did you mean 'train'?" "$renzan" trian --help
expect_exit 64 "renzan job has no verb 'explian': did you mean 'explain'?" "$renzan" job explian 3
expect_exit 64 "renzan train has no flag '--workrs': did you mean '--workers'?" \
  "$renzan" train x.yaml --workrs 2
expect_exit 64 "did you mean '--vocabulary'?" "$renzan" data import x --output y --vocabluary=hash:3
expect_exit 64 "did you mean 'predict'?" "$renzan" help predcit
expect_exit 64 "renzan has no verb 'qqqqqq' (" "$renzan" qqqqqq
expect_exit 64 "renzan eval does not expect" "$renzan" eval a --data b c d
# A verb with subcommands lists them.
expect_exit 64 "explain  " "$renzan" job

# The version output has what a bug report needs.
"$renzan" --version >version.txt
grep -q '^renzan [0-9]' version.txt || fail "version: $(cat version.txt)"
grep -qE '^instruction set (avx512|avx2|sse4|neon)' version.txt || fail "no instruction set"
for library in Highway 'Open MPI' glibc SQLite libcurl libmicrohttpd zlib zstd; do
  grep -q "$library v\?[0-9]" version.txt || fail "no version of $library: $(cat version.txt)"
done

# A manual page for every verb, from the same text.
"$renzan" help --write-pages pages
[ "$(ls pages/man1 | wc -l)" -gt 30 ] || fail "few pages: $(ls pages/man1)"
grep -qF 'fBrenzan\-train\fR(1)' pages/man1/renzan.1 || fail "renzan.1 does not list train"
for page in renzan renzan-train renzan-data renzan-data-import renzan-cluster-up renzan-doctor; do
  [ -s pages/man1/$page.1 ] || fail "no page $page"
done
for flag in workers set rerun print-config; do
  grep -q -- "--$flag" <("$renzan" help train) || fail "help train: no --$flag"
  grep -qF -- "\\-\\-${flag//-/\\-}" pages/man1/renzan-train.1 || fail "man page: no --$flag"
done
"$renzan" help --man train | cmp - pages/man1/renzan-train.1
# Descriptions are capitalised, unless they begin with a value.
awk 'FNR == 1 { flag = 0 } FNR == flag + 2 && /^(a|an|the|another|leave|print|show|write|read) / {
  print FILENAME ": " $0 } /^\.TP/ { flag = FNR }' pages/man1/* >lower_case.txt
[ ! -s lower_case.txt ] || fail "not capitalised: $(cat lower_case.txt)"

# Everything that the program and the first documents show exists. Run directories are named as
# `renzan train` names them, or by a user.
documents=("$source_root/README.md" "$source_root/docs/training.md" "$source_root/docs/cluster.md")
time='[0-9]{4}(-[0-9]{2}){2}T([0-9]{2}:){2}[0-9]{2}Z'
sed 's/\\//g' pages/man1/* "${documents[@]}" | grep -oE 'runs/[^ /`]*' >names.txt
grep -qE "^runs/dlrm-$time\$" names.txt || fail "no run directory in an example"
! grep -E '[0-9]' names.txt | grep -vE "^runs/[a-z]+-$time\$" || fail "names of no run directory"

# Examples exist.
sed 's/\\//g' pages/man1/* "${documents[@]}" |
  grep -oE '[A-Za-z0-9_./-]*examples/[A-Za-z0-9_./-]+' | sed 's/\.$//; s/^\(\.\.\/\)*//' | sort -u >examples.txt
[ "$(wc -l <examples.txt)" -ge 3 ] || fail "few examples: $(cat examples.txt)"
while read -r example; do
  [ -e "$source_root/$example" ] || fail "help names $example, which does not exist"
done <examples.txt

if command -v groff >/dev/null; then
  for page in pages/man1/*; do
    groff -man -ww -z "$page" 2>groff.txt
    [ ! -s groff.txt ] || { cat groff.txt >&2; fail "groff warns of $page"; }
  done
else
  echo "no groff: the form of the pages is not checked"
fi

# Completion in bash: the words offered for this command line.
offered() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _renzan
  echo "${COMPREPLY[*]}"
}
"$renzan" completion bash | cmp - pages/bash/renzan
source pages/bash/renzan
[ "$(offered renzan trai)" = train ] || fail "bash: renzan trai"
[ "$(offered renzan data im)" = import ] || fail "bash: renzan data im"
[ "$(offered renzan train --wor)" = --workers ] || fail "bash: renzan train --wor"
[ "$(offered renzan data synth --format d)" = dataset ] || fail "bash: choices"
[ "$(offered renzan nodes --socket drain dr)" = drain ] || fail "bash: a flag's value is no verb"
[ "$(offered renzan help data in)" = inspect ] || fail "bash: renzan help data in"
[ -z "$(offered renzan train --set '')" ] || fail "bash: files for values"
[ -z "$(offered renzan submit -- trai)" ] || fail "bash: nothing of ours after --"

"$renzan" completion zsh | cmp - pages/zsh/_renzan
if command -v zsh >/dev/null; then
  zsh -n pages/zsh/_renzan || fail "zsh does not take the completion"
  # A shell in a pseudo terminal, where the Tab key is pressed.
  cat >tab.zsh <<'ZSH'
zmodload zsh/zpty
fpath=($PWD/pages/zsh $fpath)
zpty shell "PS1= zsh -f -i"
zpty -w shell "fpath=($PWD/pages/zsh \$fpath); autoload -U compinit; compinit -u -D; echo READY"
zpty -r shell text '*READY*READY*'
zpty -w -n shell $'renzan data imp\t --outp\t'
zpty -r -m shell text '*import*--output*' && print ok
zpty -d shell
ZSH
  [ "$(timeout 60 zsh -f tab.zsh | tail -1)" = ok ] || fail "zsh does not complete"
else
  echo "no zsh: its completion is not tried"
fi
