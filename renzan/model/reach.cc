#include "renzan/model/reach.h"

#include <algorithm>
#include <cstdlib>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/model/blocks/block_error.h"
#include "renzan/model/catalogue/catalogue.h"

namespace renzan {
namespace {

// The dot interaction passes on the bottom MLP's output as it is, and everything else only as
// products of pairs. Without dense features, the bottom MLP's output is zero.
bool SeesOnlyPairs(const ModelOptions& options) {
  return options.type == "dlrm" && options.num_dense == 0;
}

// The line of a place such as "config.yaml:7:5"; 0 if it names none, as that of an override.
int LineOf(const std::string& where) {
  const size_t column = where.rfind(':');
  if (column == std::string::npos || column == 0) return 0;
  const size_t line = where.rfind(':', column - 1);
  return line == std::string::npos ? 0 : std::atoi(where.c_str() + line + 1);
}

// Throws BlockError of the whole graph, which begins with the first of its blocks in the file.
[[noreturn]] void RejectGraph(const Graph& graph, const std::string& problem) {
  std::string where;
  for (const GraphBlock& block : graph)
    if (const int line = LineOf(block.where); line > 0 && (where.empty() || line < LineOf(where)))
      where = block.where;
  throw BlockError(where, "model.blocks: " + problem);
}

// Throws kConfig unless a block takes the input if and only if the dataset has features for it.
void CheckUse(const Graph& graph, const char* input, size_t features, const char* kind) {
  const auto user = std::find_if(graph.begin(), graph.end(), [&](const GraphBlock& block) {
    return std::find(block.inputs.begin(), block.inputs.end(), input) != block.inputs.end();
  });
  if (features > 0 && user == graph.end())
    RejectGraph(graph, fmt::format("no block takes {}, but the dataset has {}: give them to a "
                                   "block, or import the data without them",
                                   input, Counted(features, fmt::format("{} feature", kind))));
  if (features == 0 && user != graph.end())
    RejectBlock(user->where, user->name,
                fmt::format("takes {}, which is empty: the dataset has no feature that is {}",
                            input, kind));
}

bool IsTaken(const Graph& graph, const std::string& input) {
  return std::any_of(graph.begin(), graph.end(), [&](const GraphBlock& block) {
    return std::find(block.inputs.begin(), block.inputs.end(), input) != block.inputs.end();
  });
}

// Throws kConfig unless every feature whose rows are pooled is taken, with all or by itself.
void CheckPooledAreTaken(const ModelOptions& options) {
  const bool apart = std::any_of(
      options.tables.begin(), options.tables.end(),
      [&](const TableInput& table) { return IsTaken(options.blocks, EmbeddingsOf(table.name)); });
  if (!apart || IsTaken(options.blocks, kEmbeddingsInput))
    return CheckUse(options.blocks, kEmbeddingsInput, options.tables.size(), "categorical");
  for (const TableInput& table : options.tables)
    if (!IsTaken(options.blocks, EmbeddingsOf(table.name)))
      RejectGraph(options.blocks,
                  fmt::format("no block takes embeddings.{}: give it to a block, or import the "
                              "data without this feature",
                              UnescapeName(table.name)));
}

// Throws kConfig unless every sequence is taken.
void CheckSequencesAreTaken(const ModelOptions& options) {
  if (options.sequences.empty()) return;
  const CatalogueEntry* const entry = FindEntry(options.type);
  const auto check_negatives = [&](const SequenceInput& sequence, bool taken) {
    if (!sequence.negatives_of.empty() && !taken)
      Fail(ErrorCode::kConfig,
           "model.negatives.{}: {} takes them: leave them out, or give embeddings.{} to a "
           "sampled_softmax",
           UnescapeName(sequence.negatives_of),
           entry == nullptr ? "no block" : fmt::format("nothing in model.type: {}", options.type),
           UnescapeName(sequence.name));
  };
  for (const SequenceInput& sequence : options.sequences)
    check_negatives(sequence, entry == nullptr || entry->takes_negatives);
  const Graph graph = GraphOf(options);
  for (const SequenceInput& sequence : options.sequences) {
    const bool taken = IsTaken(graph, EmbeddingsOf(sequence.name));
    check_negatives(sequence, taken);
    if (!taken)
      Fail(ErrorCode::kConfig,
           "model.type: {} does not take the sequence '{}': set model.tables.{}.pooling to that of "
           "its table, sum or mean, or use a model that does",
           options.type, UnescapeName(sequence.name), UnescapeName(sequence.name));
  }
}

// Throws BlockError for an input that names no feature. A misspelt one would otherwise be reported
// as the feature that nothing takes.
void CheckFeaturesExist(const ModelOptions& options) {
  std::vector<std::string> names;
  for (const TableInput& table : options.tables) names.push_back(UnescapeName(table.name));
  for (const SequenceInput& sequence : options.sequences)
    names.push_back(UnescapeName(sequence.name));
  for (const GraphBlock& block : options.blocks)
    for (const std::string& input : block.inputs) {
      const std::string feature = UnescapeName(FeatureOfInput(input));
      if (feature.empty() || feature.ends_with(kNegativesSuffix) ||
          std::find(names.begin(), names.end(), feature) != names.end())
        continue;
      const std::string nearest = NearestName(feature, names);
      RejectBlock(block.where, block.name,
                  fmt::format(": the dataset has no categorical feature '{}'{}", Escape(feature),
                              nearest.empty() ? "" : ": did you mean '" + Escape(nearest) + "'"));
    }
}

}  // namespace

void CheckInputsReachLogit(const ModelOptions& options) {
  if (options.type == kBlocksType) {
    CheckFeaturesExist(options);
    CheckUse(options.blocks, kDenseInput, static_cast<size_t>(options.num_dense), "dense");
    CheckPooledAreTaken(options);
  }
  CheckSequencesAreTaken(options);
  if (const CatalogueEntry* entry = FindEntry(options.type);
      entry != nullptr && entry->needs_sequences && options.sequences.empty())
    Fail(ErrorCode::kConfig,
         "model.type: {} attends to sequences, but the dataset has none: import it with max_length "
         "in the schema",
         options.type);
  if (SeesOnlyPairs(options) && options.tables.size() == 1)
    Fail(ErrorCode::kConfig,
         "model.type: {} compares features in pairs, but the dataset has no dense features and one "
         "categorical feature ({}): every prediction would be the same; use model.type: "
         "dlrm_dcnv2, or data with more features",
         options.type, options.tables[0].name);
}

void CheckBatchStatistics(const ModelOptions& options, int64_t samples_per_virtual_worker) {
  const std::unique_ptr<Model> model = MakeModel(options);
  model->CheckComparisonsAreOutputs();
  if (samples_per_virtual_worker > 1) return;
  constexpr const char* kAdvice =
      "but each has only one: raise training.batch_size to twice numerics.virtual_workers or more, "
      "or lower numerics.virtual_workers";
  if (const std::string block = model->ComparesSamples(); !block.empty())
    model->Reject(
        block,
        fmt::format("takes a sample's negatives from the other samples of its virtual worker, {}",
                    kAdvice));
  for (const Parameter& parameter : model->layout().parameters())
    if (parameter.is_statistic())
      model->Reject(parameter.name.substr(0, parameter.name.find('.')),
                    fmt::format("normalizes by the samples of a virtual worker, {}", kAdvice));
}

std::string LostEffects(const ModelOptions& options) {
  if (!SeesOnlyPairs(options)) return "";
  return fmt::format(
      "model.type: {} without dense features sees its {} only as products of "
      "pairs, not what each says by itself: it learns slowly and is less accurate; model.type: "
      "dlrm_dcnv2 sees both",
      options.type, Counted(options.tables.size(), "categorical feature"));
}

}  // namespace renzan
