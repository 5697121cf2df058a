#pragma once

// A parsed YAML document in which every node knows its location: the step between yaml-cpp and
// ConfigFields. Internal to config.cc.

#include <string>
#include <string_view>
#include <vector>

namespace renzan::internal {

struct ConfigTree {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string where;      // "config.yaml:12:5" or "--set numerics.isa=avx2"
  std::string text = {};  // of a scalar
  bool quoted = false;    // a quoted scalar is always a string
  std::vector<ConfigTree> items = {};
  std::vector<Entry> entries = {};

  Entry* Find(std::string_view key);
};

struct ConfigTree::Entry {
  std::string key;
  std::string where;  // of the key
  ConfigTree value;
};

// Parses a single document: a map, or nothing. Throws Error kConfig for bad syntax or a duplicate
// key.
ConfigTree ParseConfig(std::string_view yaml, const std::string& name);

struct Override {
  std::string path;   // "numerics.isa"
  std::string where;  // "--set numerics.isa=avx2"
};
// Puts the value of "a.b=value" into `root`. Throws Error kConfig.
Override ApplyOverride(const std::string& override_text, ConfigTree& root);

}  // namespace renzan::internal
