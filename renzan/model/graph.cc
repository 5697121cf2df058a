#include "renzan/model/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"

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
void CheckName(const std::string& name) {
  if (IsGraphInput(name))
    Fail(ErrorCode::kConfig, "block {} has the name of an input of the model", name);
  if (name == "embedding")
    Fail(ErrorCode::kConfig, "no block can have the name embedding, which the tables have");
  if (!IsBlockName(name))
    Fail(ErrorCode::kConfig, "block '{}': names consist of letters, digits, _ and -", Escape(name));
}

void CheckInputsExist(const std::vector<GraphBlock>& blocks) {
  std::vector<std::string> names = {kDenseInput, kEmbeddingsInput};
  for (const GraphBlock& block : blocks) {
    CheckName(block.name);
    names.push_back(block.name);
  }
  for (const GraphBlock& block : blocks)
    for (const std::string& input : block.inputs) {
      if (!FeatureOfInput(input).empty()) continue;
      if (std::find(names.begin(), names.end(), input) != names.end()) continue;
      const std::string nearest = NearestName(input, names);
      Fail(ErrorCode::kConfig, "block {}: its input '{}' does not exist{}", block.name, input,
           nearest.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                           : ": did you mean '" + nearest + "'?");
    }
}

// "a → b → a", from a block that depends on itself or on such a block.
std::string CycleFrom(const std::vector<GraphBlock>& blocks, const std::string& start) {
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
    return fmt::format("{}", fmt::join(cycle, " → "));
  }
}

void CheckAllAreUsed(const Graph& graph, const std::vector<std::string>& outputs) {
  for (const std::string& output : outputs)
    if (Find(graph, output) == nullptr)
      Fail(ErrorCode::kConfig, "no block {} gives the output that names it", output);
  std::vector<std::string> unused;
  for (const GraphBlock& block : graph) {
    const bool used = std::any_of(graph.begin(), graph.end(), [&](const GraphBlock& other) {
      return std::find(other.inputs.begin(), other.inputs.end(), block.name) != other.inputs.end();
    });
    if (!used && std::find(outputs.begin(), outputs.end(), block.name) == outputs.end())
      unused.push_back(block.name);
  }
  if (!outputs.empty() && !unused.empty())
    Fail(ErrorCode::kConfig,
         "block {} is neither the input of another nor a block of model.outputs", unused[0]);
  if (outputs.empty() && unused.size() != 1)
    Fail(
        ErrorCode::kConfig,
        "exactly one block, which gives the logit, must be the input of no other, but {} are; name "
        "several outputs in model.outputs",
        fmt::join(unused, ", "));
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

Graph SortedGraph(std::vector<GraphBlock> blocks, const std::vector<std::string>& outputs) {
  CheckInputsExist(blocks);
  std::sort(blocks.begin(), blocks.end(),
            [](const GraphBlock& a, const GraphBlock& b) { return a.name < b.name; });
  Graph sorted;
  while (!blocks.empty()) {
    const auto next = std::find_if(blocks.begin(), blocks.end(), [&](const GraphBlock& block) {
      return std::none_of(block.inputs.begin(), block.inputs.end(),
                          [&](const std::string& input) { return Find(blocks, input); });
    });
    if (next == blocks.end())
      Fail(ErrorCode::kConfig, "blocks form a cycle: {}", CycleFrom(blocks, blocks.front().name));
    sorted.push_back(std::move(*next));
    blocks.erase(next);
  }
  CheckAllAreUsed(sorted, outputs);
  return sorted;
}

}  // namespace renzan
