#pragma once

// Which parts of a saved model a run with another one can start from: dense parameters of the same
// name and shape, tables of the same name and dimension.

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "renzan/checkpoint/reader.h"
#include "renzan/nn/parameters.h"
#include "renzan/state/model_state.h"

namespace renzan {

// Parts that mean something else there, whatever their names and shapes.
struct OtherParts {
  std::set<std::string> parameters;           // they read other columns
  std::map<std::string, std::string> tables;  // why: "has other features there"
};

struct PartMatch {
  // By name.
  std::set<std::string> tables, parameters;              // that are taken
  std::set<std::string> other_tables, other_parameters;  // of the run, that begin as initialised
  // For people: "'top.0.weight' is [16, 13] there and [32, 13] here", those of tables first.
  std::vector<std::string> begin_anew;
  std::vector<std::string> left;  // "table 'user'", what only the saved model has
};

// Reads no values.
PartMatch MatchParts(const CheckpointReader& reader, const ParameterLayout& layout,
                     std::span<const TableSpec> tables, const OtherParts& others);

}  // namespace renzan
