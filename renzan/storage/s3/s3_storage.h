#pragma once

// Storage in an S3-compatible object store.
//
// A tree is the objects below its path. Each process that writes a tree gives its objects unique
// names, so that two processes never write the same object; the manifest, which lists them, is
// written last and only if there is none. So a tree exists whole or not at all, and if two
// processes write the same tree, the second gets an Error. Thread-safe.

#include <memory>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/storage/s3/client.h"
#include "renzan/storage/s3/lease.h"
#include "renzan/storage/storage.h"

namespace renzan::s3 {

struct S3Options {
  Client::Options client = {};
  Lease::Times lease = {};
  std::string copies;  // the directory for copies of objects (Fetch); empty: $TMPDIR, or /tmp
};

// Reads settings from the environment. `clock` outlives the result. Throws Error kConfig.
std::unique_ptr<Storage> OpenS3(const Environment& environment, const Clock& clock,
                                const S3Options& options);

// The environment variables of this process.
Environment ProcessEnvironment();

}  // namespace renzan::s3
