#pragma once

// manifest.json of a run directory: everything that determines the bits of the model, so that a run
// can be repeated and compared, and the checksum of the resulting model.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace renzan {

struct RunManifest {
  std::string build;   // version and build id: "0.1.0-3f9a0c51d2be"
  std::string config;  // resolved, YAML
  uint64_t seed = 0;
  std::map<std::string, std::string> datasets;   // path -> fingerprint
  std::string isa;                               // chosen for this run: "avx512"
  std::map<std::string, std::string> libraries;  // name -> version: "libc" -> "glibc 2.36"
  std::vector<std::string> hosts;                // by rank
  std::string initialized_from;                  // identifies the model it started from, or empty
  double started_unix_seconds = 0;
  int64_t left_out_rows = 0;  // of each epoch, because they do not fill a batch
  // Empty until the run is done.
  std::string model_sha256;
  int64_t steps = 0;
};

// Replaces `path` atomically. Throws Error kIo.
void WriteRunManifest(const std::string& path, const RunManifest& manifest);

// Throws Error kNoInput or kData.
RunManifest ReadRunManifest(const std::string& path);

// The fingerprint of the dataset in `directory` when the run began; empty if it was not among the
// run's.
std::string RecordedFingerprint(const RunManifest& manifest, const std::string& directory);

// One sentence for each reason why `now` may compute other bits than `recorded`: different data,
// seed, instruction set, library or build. Hosts do not matter. Configurations are not compared,
// because some keys (workers, threads) do not matter either.
std::vector<std::string> DifferencesThatChangeBits(const RunManifest& recorded,
                                                   const RunManifest& now);

}  // namespace renzan
