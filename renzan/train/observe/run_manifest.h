#pragma once

// manifest.json of a run directory: everything that fixes the bits of the model, so that a run can
// be repeated and compared, and what came out.

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
  std::string isa;                               // as chosen for this run: "avx512"
  std::map<std::string, std::string> libraries;  // name -> version: "oneDNN" -> "2.6.0"
  std::vector<std::string> hosts;                // by rank
  double started_unix_seconds = 0;
  // Empty until the run is done.
  std::string model_sha256;
  int64_t steps = 0;
};

// Replaces `path` atomically. Throws Error kIo.
void WriteRunManifest(const std::string& path, const RunManifest& manifest);

// Throws Error kNoInput or kData.
RunManifest ReadRunManifest(const std::string& path);

// One sentence for each thing that may let `now` compute other bits than `recorded` did: other
// data, another seed, instruction set, library or program. Hosts never do, and the configuration is
// not compared, because parts of it (workers, threads) do not either.
std::vector<std::string> DifferencesThatChangeBits(const RunManifest& recorded,
                                                   const RunManifest& now);

}  // namespace renzan
