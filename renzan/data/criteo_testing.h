#pragma once

// Lines of Criteo's format, and imports of them, for tests.

#include <xxhash.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "renzan/data/import.h"
#include "renzan/data/testing.h"

namespace renzan::testing {

// A Criteo line: I1..I13 and C1..C26 are empty unless given.
inline std::string CriteoLine(const std::string& label, std::vector<std::string> dense,
                              std::vector<std::string> categorical) {
  dense.resize(13);
  categorical.resize(26);
  return fmt::format("{}\t{}\t{}\n", label, fmt::join(dense, "\t"), fmt::join(categorical, "\t"));
}

inline const std::string kCriteoLines =
    CriteoLine("1", {"5", "-2", "", "0"}, {"68fd1e64", "", "0b153874"}) +
    CriteoLine("0", {"", "3"}, {"05db9164", "80e26c9b", "0b153874"});

inline ImportOptions CriteoOptions(const TemporaryDirectory& dir, std::vector<std::string> inputs) {
  ImportOptions options;
  options.inputs = std::move(inputs);
  options.output = dir / "out";
  return options;
}

// The id of a hashed value.
inline int64_t Hashed(const std::string& value, uint64_t n) {
  return static_cast<int64_t>(1 + XXH64(value.data(), value.size(), 0) % (n - 1));
}

}  // namespace renzan::testing
