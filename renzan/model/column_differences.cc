#include "renzan/model/column_differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "renzan/model/blocks/first_order.h"
#include "renzan/model/blocks/mlp.h"

namespace renzan {
namespace {

// Numbers for what columns are: equal ones for the same.
class Meanings {
 public:
  int Of(const std::string& text) {
    return numbers_.emplace(text, static_cast<int>(numbers_.size())).first->second;
  }

 private:
  std::map<std::string, int> numbers_;
};

// What a block reads and gives.
struct Reading {
  std::string_view type;
  std::vector<int> inputs;
  int output = 0;
};

struct Readings {
  Graph graph;
  std::map<std::string, Reading> blocks;
};

Readings ReadingsOf(const ModelOnFeatures& of, Meanings* meanings) {
  const ModelOptions& model = of.model;
  std::map<std::string, int> values;
  // Names that are escaped have no spaces; those of dense features may have anything.
  std::string dense = "dense";
  for (const std::string& name : of.dense) dense += fmt::format(" {}:{}", name.size(), name);
  values[kDenseInput] = meanings->Of(dense);
  std::string all = "embeddings";
  for (const TableInput& table : model.tables) {
    const std::string one = fmt::format(" {}:{}", table.name, table.dim);
    values[EmbeddingsOf(table.name)] = meanings->Of("embeddings of" + one);
    all += one;
  }
  values[kEmbeddingsInput] = meanings->Of(all);
  for (const SequenceInput& sequence : model.sequences)
    values[EmbeddingsOf(sequence.name)] =
        meanings->Of(fmt::format("sequence {}:{}", sequence.name, sequence.dim));
  Readings readings{.graph = GraphOf(model), .blocks = {}};
  for (const GraphBlock& block : readings.graph) {
    Reading reading{.type = block.options.type(), .inputs = {}};
    for (const std::string& input : block.inputs) {
      const auto found = values.find(input);
      reading.inputs.push_back(found != values.end() ? found->second : meanings->Of(input));
    }
    reading.output =
        meanings->Of(reading.type == Mlp::kType
                         ? "units of " + block.name
                         : fmt::format("{} of {}", reading.type, fmt::join(reading.inputs, " ")));
    values[block.name] = reading.output;
    readings.blocks.emplace(block.name, std::move(reading));
  }
  return readings;
}

bool HasFirstOrder(const Readings& readings) {
  return std::ranges::any_of(readings.blocks, [](const auto& block) {
    return block.second.type == FirstOrder::kType || block.second.type == Factors::kType;
  });
}

int MeaningOf(const ModelOutput& output, const Readings& readings) {
  const std::string& block = output.block.empty() ? readings.graph.back().name : output.block;
  const auto found = readings.blocks.find(block);
  return found == readings.blocks.end() ? -1 : found->second.output;
}

bool OutputsDiffer(const ModelOptions& there, const Readings& of_there, const ModelOptions& here,
                   const Readings& of_here) {
  // The only output may have a name or none.
  const bool only = there.outputs.size() == 1 && here.outputs.size() == 1;
  for (const ModelOutput& a : there.outputs)
    for (const ModelOutput& b : here.outputs)
      if ((only || a.name == b.name) && MeaningOf(a, of_there) != MeaningOf(b, of_here))
        return true;
  return false;
}

}  // namespace

ColumnDifferences CompareColumns(const ModelOnFeatures& there, const ModelOnFeatures& here,
                                 const ParameterLayout& layout) {
  Meanings meanings;
  const Readings of_there = ReadingsOf(there, &meanings), of_here = ReadingsOf(here, &meanings);
  ColumnDifferences differences{
      .parameters = {},
      .rows = HasFirstOrder(of_there) != HasFirstOrder(of_here),
      .outputs = OutputsDiffer(there.model, of_there, here.model, of_here)};
  for (const Parameter& parameter : layout.parameters()) {
    const auto a = of_there.blocks.find(parameter.block), b = of_here.blocks.find(parameter.block);
    if (a == of_there.blocks.end() || b == of_here.blocks.end()) continue;
    const bool same_type = a->second.type == b->second.type;
    // A bias of logits is of no column either.
    const bool reads_columns = a->second.type == Mlp::kType
                                   ? parameter.name == parameter.block + ".0.weight"
                                   : a->second.type != FirstOrder::kType;
    if (!same_type || (reads_columns && a->second.inputs != b->second.inputs))
      differences.parameters.insert(parameter.name);
  }
  return differences;
}

}  // namespace renzan
