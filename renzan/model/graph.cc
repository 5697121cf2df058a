#include "renzan/model/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/base/escape.h"
#include "renzan/model/blocks/block_error.h"

namespace renzan {
namespace {

bool IsGraphInput(const std::string& name) {
  return name == kDenseInput || name == kEmbeddingsInput;
}

const std::string kOfOne = std::string(kEmbeddingsInput) + ".";

const GraphBlock* Find(const std::vector<GraphBlock>& blocks, const std::string& name) {
  const auto at = std::find_if(blocks.begin(), blocks.end(),
                               [&](const GraphBlock& block) { return block.name == name; });
  return at == blocks.end() ? nullptr : &*at;
}

// Names begin those of parameters: with a dot, or that of the tables, two parameters might get one.
void CheckName(const GraphBlock& block) {
  const std::string& name = block.name;
  if (IsGraphInput(name)) RejectBlock(block.where, name, "has the name of an input of the model");
  if (name == "embedding")
    throw BlockError(block.where, "no block can have the name embedding, which the tables have");
  if (!IsBlockName(name))
    RejectBlock(block.where, "'" + Escape(name) + "'",
                ": names consist of letters, digits, _ and -");
}

void CheckInputsExist(const std::vector<GraphBlock>& blocks) {
  std::vector<std::string> names = {kDenseInput, kEmbeddingsInput};
  for (const GraphBlock& block : blocks) {
    CheckName(block);
    names.push_back(block.name);
  }
  for (const GraphBlock& block : blocks)
    for (const std::string& input : block.inputs) {
      if (!FeatureOfInput(input).empty()) continue;
      if (std::find(names.begin(), names.end(), input) != names.end()) continue;
      const std::string nearest = NearestName(input, names);
      RejectBlock(
          block.where, block.name,
          fmt::format(": its input '{}' does not exist{}", input,
                      nearest.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                      : ": did you mean '" + nearest + "'?"));
    }
}

// Throws BlockError, from a block that depends on itself or on such a block.
[[noreturn]] void RejectCycle(const std::vector<GraphBlock>& blocks, const std::string& start) {
  std::vector<std::string> path = {start};
  for (;;) {
    const GraphBlock& block = *Find(blocks, path.back());
    const auto next = std::find_if(block.inputs.begin(), block.inputs.end(),
                                   [&](const std::string& input) { return Find(blocks, input); });
    const bool seen = std::find(path.begin(), path.end(), *next) != path.end();
    path.push_back(*next);
    if (!seen) continue;
    // From an input to what uses it.
    std::vector<std::string> cycle(std::find(path.begin(), path.end(), path.back()), path.end());
    std::reverse(cycle.begin(), cycle.end());
    throw BlockError(Find(blocks, cycle.front())->where,
                     fmt::format("blocks form a cycle: {}", fmt::join(cycle, " → ")));
  }
}

void CheckAllAreUsed(const Graph& graph, const std::vector<GraphOutput>& outputs) {
  for (const GraphOutput& output : outputs)
    if (Find(graph, output.block) == nullptr)
      throw BlockError(output.where,
                       fmt::format("no block {} gives the output that names it", output.block));
  const auto is_output = [&](const GraphBlock& block) {
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const GraphOutput& output) { return output.block == block.name; });
  };
  std::vector<std::string> unused;
  for (const GraphBlock& block : graph) {
    const bool used = std::any_of(graph.begin(), graph.end(), [&](const GraphBlock& other) {
      return std::find(other.inputs.begin(), other.inputs.end(), block.name) != other.inputs.end();
    });
    if (!used && !is_output(block)) unused.push_back(block.name);
  }
  if (!outputs.empty() && !unused.empty())
    RejectBlock(Find(graph, unused[0])->where, unused[0],
                "is neither the input of another nor a block of model.outputs");
  if (outputs.empty() && unused.size() != 1)
    throw BlockError(
        unused.empty() ? "" : Find(graph, unused[0])->where,
        fmt::format("exactly one block, which gives the logit, must be the input of no other, but "
                    "{} are; name several outputs in model.outputs",
                    fmt::join(unused, ", ")));
}

}  // namespace

bool IsBlockName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

std::string EmbeddingsOf(const std::string& feature) { return kOfOne + feature; }

std::string FeatureOfInput(const std::string& input) {
  return input.starts_with(kOfOne) ? input.substr(kOfOne.size()) : "";
}

Graph SortedGraph(std::vector<GraphBlock> blocks, const std::vector<GraphOutput>& outputs) {
  CheckInputsExist(blocks);
  std::sort(blocks.begin(), blocks.end(),
            [](const GraphBlock& a, const GraphBlock& b) { return a.name < b.name; });
  Graph sorted;
  while (!blocks.empty()) {
    const auto next = std::find_if(blocks.begin(), blocks.end(), [&](const GraphBlock& block) {
      return std::none_of(block.inputs.begin(), block.inputs.end(),
                          [&](const std::string& input) { return Find(blocks, input); });
    });
    if (next == blocks.end()) RejectCycle(blocks, blocks.front().name);
    sorted.push_back(std::move(*next));
    blocks.erase(next);
  }
  CheckAllAreUsed(sorted, outputs);
  return sorted;
}

}  // namespace renzan
