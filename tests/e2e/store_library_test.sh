#!/usr/bin/env bash
# The client of object stores is in a library that the program loads when a path in a store is first
# used. Without it, such a path is one error that says what to do, and everything else works.
source "$(dirname "$0")/lib.sh"
build=$(dirname "$(dirname "$renzan")")
[ -e "$build/lib/librenzan_s3.so" ] || fail "build renzan_s3 first"
export AWS_ENDPOINT_URL=nowhere AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b AWS_REGION=us-east-1

mkdir -p trainer/bin trainer/lib
cp "$renzan" trainer/bin/
build_id=$("$renzan" --version | sed -n 's/.*build \([0-9a-f]\{12\}\).*/\1/p')
renzan=$work/trainer/bin/renzan
missing="error: the client of object stores (s3://) is missing: neither $work/trainer/bin/librenzan_s3.so \
nor $work/trainer/lib/librenzan_s3.so exists: build it with \`scripts/build release renzan_s3\`, or \
reinstall renzan"
expect_exit 66 "$missing" "$renzan" checkpoint list s3://bucket/run
"$renzan" data synth --format dataset --rows 4000 --output data >out.txt 2>&1 || { cat out.txt; fail "synth"; }
expect_exit 66 "$missing" "$renzan" data inspect s3://bucket/data
small_config data
"$renzan" train small.yaml --run-dir run >out.txt 2>&1 || { cat out.txt; fail "train"; }
expect_exit 66 "$missing" "$renzan" train small.yaml --run-dir other --set checkpoint.dir=s3://bucket/run \
  --set checkpoint.every_steps=10

# doctor_says STATE HERE...: about object stores.
doctor_says() {
  "$renzan" doctor >doctor.txt
  grep -q "^object stores  *$*" doctor.txt || fail "no '$*': $(cat doctor.txt)"
}
doctor_says "missing  *only files of this machine  *the client of object stores (s3://) is missing: .*scripts/build release renzan_s3"

# Found in ../lib: the error is that of the library, which knows that this is no address.
cp "$build/lib/librenzan_s3.so" trainer/lib/
doctor_says "ok  *$work/trainer/lib/librenzan_s3.so"
expect_exit 78 "AWS_ENDPOINT_URL" "$renzan" checkpoint list s3://bucket/run
# Of another build: its functions are not called.
sed "s/$build_id/0123456789ab/g" "$build/lib/librenzan_s3.so" >trainer/bin/librenzan_s3.so
cmp -s "$build/lib/librenzan_s3.so" trainer/bin/librenzan_s3.so && fail "the library does not say its build"
expect_exit 66 "trainer/bin/librenzan_s3.so is of another build than this program (0123456789ab, not $build_id)" \
  "$renzan" checkpoint list s3://bucket/run
doctor_says "missing .* is of another build than this program"
# Damaged.
echo nothing >trainer/bin/librenzan_s3.so
doctor_says "missing .* cannot be loaded: .*"
expect_exit 66 "the client of object stores (s3://) cannot be loaded: " "$renzan" checkpoint list s3://bucket/run
