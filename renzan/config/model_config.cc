#include "renzan/config/model_config.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/config/decides.h"
#include "renzan/config/rules.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/model/blocks/block_error.h"
#include "renzan/model/blocks/types.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/model.h"

namespace renzan {

namespace {

constexpr const char *kBinaryCrossEntropy = "binary_cross_entropy",
                     *kSquaredError = "squared_error";
constexpr int64_t kMaxDim = 4096;  // columns of a row
constexpr double kMaxDeviation = 1e3;
constexpr const char* kOneLess =
    "must have at most 4095 columns, because rows have a first-order weight, too";

std::vector<std::string> TypeNames() {
  std::vector<std::string> names = ModelTypeNames();
  names.push_back(kBlocksType);
  return names;
}

// Applies a function to the features' names in inputs: graphs have them escaped.
std::vector<std::string> WithFeatureNames(std::vector<std::string> inputs,
                                          std::string (*change)(std::string_view)) {
  for (std::string& input : inputs)
    if (const std::string feature = FeatureOfInput(input); !feature.empty())
      input = EmbeddingsOf(change(feature));
  return inputs;
}

std::optional<BlockError> WhyNoGraph(const ModelConfig& model) {
  try {
    GraphOf(model);
    return std::nullopt;
  } catch (const BlockError& error) {
    return error;
  }
}

// Says what to use instead of a type that is the nearest word to another one by chance.
void ReadBlockType(ConfigFields& fields, std::string* type) {
  try {
    fields.Choice("type", type, BlockTypeNames());
  } catch (const Error& error) {
    const std::string instead = InsteadOfBlockType(*type), message = error.what();
    if (instead.empty()) throw;
    Fail(error.code(), "{}: use {}", message.substr(0, message.find(": allowed are ")), instead);
  }
}

void SetWhere(const ConfigFields& fields, std::string* where) {
  if (std::string stated = fields.Where(); !stated.empty()) *where = std::move(stated);
}

// "" if they are right.
std::string WhyNoOutputs(const ModelConfig& model) {
  if (model.outputs.empty()) return "";
  if (std::none_of(model.outputs.begin(), model.outputs.end(),
                   [](const auto& entry) { return entry.second.has_loss(); }))
    return "need at least one with a loss";
  const CatalogueEntry* entry = FindEntry(model.type);
  if (entry != nullptr && !entry->has_several_outputs() && model.outputs.size() > 1)
    return fmt::format(
        "are {}, but model.type: {} has one: use a model for several tasks, or "
        "model.blocks",
        model.outputs.size(), model.type);
  for (const auto& [name, output] : model.outputs) {
    if (!IsBlockName(name))
      return fmt::format("have the name '{}': names consist of letters, digits, _ and -",
                         Escape(name));
    if (!output.block.empty() && model.type != kBlocksType)
      return fmt::format("have {}.block, which needs model.type: blocks", name);
  }
  return "";
}

}  // namespace

void TableConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Choice("pooling", &pooling, {"", "sum", "mean"},
                "of the rows of a bag; empty: as in model");
  fields.Range("embedding_dim", &embedding_dim, 0, kMaxDim,
               "0: as in model; dlrm projects other rows to the model's");
  fields.Range("row_blocks", &row_blocks, 0, kMaxBlocks, "0: as in numerics");
  fields.Require(row_blocks == 0 || IsPowerOfTwo(row_blocks), "row_blocks",
                 "must be 0 or a power of two");
  fields.Range("column_blocks", &column_blocks, 0, 4096, "0: as in numerics");
  fields.Choice("initial_values", &initial_values,
                {"", "uniform", "normal", "xavier_uniform", "zeros"}, "empty: as in model");
  fields.Range("initial_deviation", &initial_deviation, 0, kMaxDeviation,
               "of initial_values: normal; 0: as in model");
  fields.Range("learning_rate_factor", &learning_rate_factor, 0, 1e6,
               "multiplies optimizer.sparse.learning_rate; 0: rows keep their values");
  fields.Field("frozen", &frozen, "rows and their states never change");
  fields.Tag(Decides::kRun);
  fields.Range("pooling_factor", &pooling_factor, 0, 1e9,
               "mean lookups per sample, for `renzan plan` without data; 0: counted in the data");
}

void BlockConfig::Describe(ConfigFields& fields) {
  SetWhere(fields, &where);
  fields.Tag(Decides::kModel);
  ReadBlockType(fields, &type);
  fields.Field("inputs", &inputs,
               "blocks, dense (the dense features) or embeddings (of all tables)");
  if (type.empty()) {
    fields.Require(false, "type", "is missing: say which type of block it is");
    return;
  }
  if (!options || type != options->type()) options = BlockOfType(type);
  options->Describe(fields);
}

void OutputConfig::Describe(ConfigFields& fields) {
  SetWhere(fields, &where);
  fields.Tag(Decides::kModel);
  fields.Field("block", &block,
               "that gives its logit or number, with type: blocks; empty: of its name");
  fields.Field("label", &label, "the data's column that it learns from; empty: of its name");
  fields.Choice(
      "loss", &loss, {"", kBinaryCrossEntropy, kSquaredError, "none"},
      "empty: squared_error of a label that is a number, else binary_cross_entropy; none: "
      "predicted without a label of its own");
  fields.Range("weight", &weight, 0, 1e6, "multiplies its loss");
  fields.Require(has_loss() || (label.empty() && weight == 1), "loss",
                 "none leaves nothing to a label or a weight");
}

void ModelConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Choice("type", &type, TypeNames(), "a model of the catalogue, or the graph in blocks");
  fields.Map("blocks", &blocks, "the graph of type: blocks");
  fields.Map("outputs", &outputs, "what is predicted, if there are several labels");
  fields.Field("negatives", &negatives,
               "by feature: so many other ids of its table, drawn for each sample in training");
  fields.Require(std::all_of(negatives.begin(), negatives.end(),
                             [](const auto& entry) {
                               return entry.second >= 1 && entry.second <= kMaxSequenceLength;
                             }),
                 "negatives", "must be 1 to 4096 for each feature");
  const std::string wrong_outputs = WhyNoOutputs(*this);
  fields.Require(wrong_outputs.empty(), "outputs", wrong_outputs);
  fields.Require(blocks.empty() || type == kBlocksType, "blocks", "needs model.type: blocks");
  fields.Require(type != kBlocksType || !blocks.empty(), "blocks",
                 "must have at least one block with model.type: blocks");
  if (type == kBlocksType && !blocks.empty()) {
    if (const std::optional<BlockError> why = WhyNoGraph(*this))
      fields.RequireAt(why->where(), false, "blocks", "is no graph of a model: " + why->problem());
  }
  const bool has_embeddings = RowColumns(type, 1) != RowColumns(type, 2);
  if (has_embeddings) fields.Range("embedding_dim", &embedding_dim, 1, kMaxDim);
  fields.Require(RowColumns(type, embedding_dim) <= kMaxDim, "embedding_dim", kOneLess);
  ModelSizes::Describe(type, fields);
  fields.Choice("pooling", &pooling, {"sum", "mean"}, "of multi-hot features not named in tables");
  fields.Choice("initial_values", &initial_values, {"uniform", "normal", "xavier_uniform", "zeros"},
                "of rows: up to ±√(1/rows), normal, or up to ±√(6/(rows + columns))");
  fields.Range("initial_deviation", &initial_deviation, 1e-30, kMaxDeviation,
               "standard deviation of initial_values: normal");
  fields.Map("tables", &tables, "settings of single tables: of features, by their names");
  for (const auto& [name, table] : tables)
    fields.Require(RowColumns(type, table.embedding_dim) <= kMaxDim, "tables", kOneLess);
  for (const auto& [name, table] : tables)
    fields.Require(
        has_embeddings || table.embedding_dim == 0, "tables",
        fmt::format("has {}.embedding_dim, but model.type: {} has no embeddings", name, type));
}

void FillFromModel(const ModelConfig& model, TableConfig* table) {
  if (table->pooling.empty()) table->pooling = model.pooling;
  if (table->initial_values.empty()) table->initial_values = model.initial_values;
  if (table->initial_deviation == 0) table->initial_deviation = model.initial_deviation;
}

std::vector<ModelOutput> OutputsOf(const ModelConfig& model) {
  if (model.outputs.empty()) return {{}};
  const CatalogueEntry* entry = FindEntry(model.type);
  std::vector<ModelOutput> outputs;
  for (const auto& [name, output] : model.outputs) {
    std::string block = output.block;
    if (block.empty() && model.type == kBlocksType) block = name;
    if (entry != nullptr && entry->has_several_outputs()) block = BlockOfOutput(name);
    outputs.push_back(
        {.name = name,
         .block = block,
         .label = !output.has_loss()     ? ""
                  : output.label.empty() ? name
                                         : output.label,
         .loss = output.loss == kSquaredError ? Loss::kSquaredError : Loss::kBinaryCrossEntropy,
         .where = output.where});
  }
  return outputs;
}

void FillOutputs(const std::vector<std::string>& labels, const std::vector<std::string>& numbers,
                 ModelConfig* model) {
  const auto is_number = [&](const std::string& label) {
    return std::find(numbers.begin(), numbers.end(), label) != numbers.end();
  };
  const CatalogueEntry* entry = FindEntry(model->type);
  if (model->outputs.empty() && entry != nullptr && entry->has_several_outputs()) {
    for (const ModelOutput& output : entry->outputs(labels))
      model->outputs[output.name] = {.block = "",
                                     .label = output.label == output.name ? "" : output.label,
                                     .loss = output.label.empty() ? "none" : "",
                                     .weight = 1};
  } else if (model->outputs.empty() && !labels.empty() && is_number(labels[0])) {
    const std::string name = IsBlockName(labels[0]) ? labels[0] : "score";
    const std::string last = model->type == kBlocksType ? GraphOf(*model).back().name : "";
    model->outputs[name] = {.block = last == name ? "" : last,
                            .label = labels[0] == name ? "" : labels[0],
                            .loss = kSquaredError,
                            .weight = 1};
  }
  for (auto& [name, output] : model->outputs)
    if (output.loss.empty())
      output.loss = is_number(output.label.empty() ? name : output.label) ? kSquaredError
                                                                          : kBinaryCrossEntropy;
}

Graph GraphOf(const ModelConfig& model) {
  std::vector<GraphBlock> blocks;
  for (const auto& [name, block] : model.blocks)
    if (block.options)
      blocks.push_back(
          {name, WithFeatureNames(block.inputs, EscapeName), *block.options, block.where});
  return SortedGraph(std::move(blocks), BlocksOfOutputs(OutputsOf(model)));
}

std::map<std::string, BlockConfig> BlocksOf(const Graph& graph) {
  std::map<std::string, BlockConfig> blocks;
  for (const GraphBlock& block : graph)
    blocks[block.name] = {block.options.type(), WithFeatureNames(block.inputs, UnescapeName),
                          block.options};
  return blocks;
}

}  // namespace renzan
