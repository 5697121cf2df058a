# librenzan.so loads only libraries of its own build: others are refused, by name.
source "$(dirname "$0")/lib.sh" "$@"
libraries=$(dirname "$renzan")/../lib
[ -e "$libraries/librenzan_s3.so" ] || skip "librenzan_s3.so is not built"
build=$($renzan --version | sed -n 's/.*build \([0-9a-f]\{12\}\).*/\1/p')
mkdir other
cp -L "$libraries/librenzan.so" other/librenzan.so

# open_in_store LIBRARY: prints what opening a checkpoint in a store says, for an endpoint that only
# the loaded library knows to be invalid.
open_in_store() {
  PYTHONPATH=$source_root/python RENZAN_LIBRARY=$1 AWS_ENDPOINT_URL=nowhere \
    AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b AWS_REGION=us-east-1 \
    python3 -c 'import renzan
try: renzan.load_checkpoint("s3://bucket/checkpoint")
except renzan.errors.Error as error: print(error)'
}
cp "$libraries/librenzan_s3.so" other/
expect_exit 0 "AWS_ENDPOINT_URL" open_in_store other/librenzan.so
sed "s/$build/0123456789ab/g" "$libraries/librenzan_s3.so" >other/librenzan_s3.so
expect_exit 0 "librenzan_s3.so is of another build than librenzan.so (0123456789ab, not $build)" \
  open_in_store other/librenzan.so
