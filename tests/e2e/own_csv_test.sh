#!/usr/bin/env bash
# From a CSV file to a trained model, by README's own commands.
source "$(dirname "$0")/lib.sh"

# The commands of the section, and the line by which the files begin.
awk '/^## / { section = $0 } /^```/ { shell = $0 == "```sh"; next }
  section == "## Train on your own CSV" && shell' "$source_root/README.md" >commands.sh
[ "$(grep -c '^renzan ' commands.sh)" = 6 ] || { cat commands.sh; fail "other commands in README"; }
header=$(sed -n '/^## Train on your own CSV/,/^## /p' "$source_root/README.md" |
  grep -oE '`[a-z_]+(,[a-z_]+)+`' | tr -d '`')
[ "$header" = clicked,age,price,country,genres,user ] || fail "other columns in README: $header"

# Clicks that depend on a dense, a one-hot and a multi-hot feature.
clicks() { # SEED ROWS
  awk -v seed="$1" -v rows="$2" -v header="$header" 'BEGIN {
    srand(seed)
    print header
    split("de fr jp", countries)
    split("news sport news|sport", genres)
    genres[4] = ""
    for (row = 0; row < rows; row++) {
      age = 18 + int(60 * rand()); country = 1 + int(3 * rand()); genre = 1 + int(4 * rand())
      chance = 0.1 + 0.3 * (country == 3) + 0.3 * (genre % 2 == 0) + 0.2 * (age > 50)
      printf "%d,%d,%.2f,%s,%s,u%d\n", rand() < chance, age, 100 * rand(), countries[country],
             genres[genre], row
    }
  }'
}
clicks 1 20000 >train.csv
clicks 2 4000 >test.csv

mkdir bin
ln -s "$renzan" bin/renzan
PATH=$work/bin:$PATH bash -euo pipefail commands.sh >said.txt 2>&1 ||
  { status=$?; cat said.txt; fail "exit $status"; }
[ "$(wc -l <scores.csv)" = 4001 ] || fail "scores of $(wc -l <scores.csv) lines"
diff <(cut -d, -f6 test.csv) <(cut -d, -f1 scores.csv) || fail "scores of other users"
auc=$(awk '/^AUC / { print $2 }' said.txt)
awk -v auc="$auc" 'BEGIN { exit !(auc > 0.65) }' || { cat said.txt; fail "AUC $auc: nothing learned"; }
