#include "renzan/saving/match_parts.h"

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/checkpoint/block_key.h"
#include "renzan/checkpoint/tensor_info.h"
#include "renzan/checkpoint/whole_tensors.h"

namespace renzan {
namespace {

struct SavedParts {
  std::map<std::string, int64_t> dims;                 // of tables
  std::map<std::string, std::vector<int64_t>> shapes;  // of dense parameters
};

SavedParts SavedPartsOf(const CheckpointReader& reader) {
  SavedParts parts;
  for (const WholeTensor& tensor : WholeTensorsOf(reader)) {
    const std::string& key = tensor.info.key;
    if (const auto of_table = ParseTableTensorKey(key)) {
      if (of_table->rest == ".weight" && tensor.info.shape.size() == 2)
        parts.dims[UnescapeName(of_table->block.table)] = tensor.info.shape[1];
    } else if (!key.starts_with("embedding.") && key.find('/') == std::string::npos) {
      parts.shapes[key] = tensor.info.shape;  // "NAME/adam_m" is an optimizer's state
    }
  }
  return parts;
}

// "": it is.
std::string WhyTableIsNotTaken(const TableSpec& table, const SavedParts& saved,
                               const OtherParts& others) {
  const auto there = saved.dims.find(table.name);
  if (there == saved.dims.end()) return "is missing there";
  if (there->second != table.embedding_dim)
    return fmt::format("has rows of {} there and {} here", Counted(there->second, "value"),
                       table.embedding_dim);
  const auto why = others.tables.find(table.name);
  return why == others.tables.end() ? "" : why->second;
}

std::string WhyParameterIsNotTaken(const Parameter& parameter, const SavedParts& saved,
                                   const OtherParts& others) {
  const auto there = saved.shapes.find(parameter.name);
  if (there == saved.shapes.end()) return "is missing there";
  if (there->second != parameter.shape)
    return fmt::format("is {} there and {} here", ShapeText(there->second),
                       ShapeText(parameter.shape));
  return others.parameters.contains(parameter.name) ? "reads other columns there" : "";
}

}  // namespace

PartMatch MatchParts(const CheckpointReader& reader, const ParameterLayout& layout,
                     std::span<const TableSpec> tables, const OtherParts& others) {
  SavedParts saved = SavedPartsOf(reader);
  PartMatch match;
  for (const TableSpec& table : tables) {
    const std::string why = WhyTableIsNotTaken(table, saved, others);
    (why.empty() ? match.tables : match.other_tables).insert(table.name);
    if (!why.empty())
      match.begin_anew.push_back(fmt::format("table '{}' {}", Escape(table.name), why));
  }
  for (const Parameter& parameter : layout.parameters()) {
    const std::string why = WhyParameterIsNotTaken(parameter, saved, others);
    (why.empty() ? match.parameters : match.other_parameters).insert(parameter.name);
    if (!why.empty()) match.begin_anew.push_back(fmt::format("'{}' {}", parameter.name, why));
  }
  for (const TableSpec& table : tables) saved.dims.erase(table.name);
  for (const Parameter& parameter : layout.parameters()) saved.shapes.erase(parameter.name);
  for (const auto& [name, dim] : saved.dims)
    match.left.push_back(fmt::format("table '{}'", Escape(name)));
  for (const auto& [name, shape] : saved.shapes) match.left.push_back(fmt::format("'{}'", name));
  return match;
}

}  // namespace renzan
