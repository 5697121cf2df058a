#include "renzan/model/model.h"

#include <algorithm>
#include <numeric>

#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/model/blocks/block_error.h"
#include "renzan/model/blocks/sequence.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/nn/elementwise.h"

namespace renzan {
namespace {

constexpr size_t kDenseValue = 0, kEmbeddingsValue = 1;

Shape ShapeOf(const std::vector<TableInput>& tables) {
  Shape shape;
  for (const TableInput& table : tables) shape.push_back({table.name, table.dim});
  return shape;
}

Shape ShapeOf(const SequenceInput& sequence) {
  Shape shape;
  for (int64_t i = 0; i < sequence.positions; ++i)
    shape.push_back({fmt::format("{}.{}", sequence.name, i), sequence.dim});
  return shape;
}

// Whether a block's output has vectors of positions that a sample may not use. Blocks that make one
// vector of a sequence give it a name of their own, those that keep a sequence's only one do not.
bool IsPadded(const Block& block, std::span<const Shape> inputs,
              const std::vector<std::optional<SequenceId>>& sequences,
              const std::vector<char>& padded) {
  if (block.sequence()) return false;
  const auto gives = [&](const FeatureVector& vector) {
    return block.shape().size() != 1 || block.shape().front().name == vector.name;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    if ((sequences[i] || padded[i]) && std::any_of(inputs[i].begin(), inputs[i].end(), gives))
      return true;
  return false;
}

}  // namespace

int64_t PooledColumns(const ModelOptions& options) { return ColumnsOf(ShapeOf(options.tables)); }

Model::Model(const ModelOptions& options, const Graph& graph)
    : options_(options), buffers_(options.precision) {
  Shape dense;
  if (options.num_dense > 0) dense = {{kDenseInput, options.num_dense}};
  values_.push_back({.name = kDenseInput, .shape = dense});
  values_.push_back(
      {.name = kEmbeddingsInput, .shape = ShapeOf(options.tables), .has_gradient = true});
  for (size_t s = 0; s < options.sequences.size(); ++s)
    values_.push_back({.name = EmbeddingsOf(options.sequences[s].name),
                       .shape = ShapeOf(options.sequences[s]),
                       .has_gradient = true,
                       .sequence = SequenceId{s}});
  for (const GraphBlock& block : graph) AddBlock(block);
  CHECK(!nodes_.empty() && !options_.outputs.empty());
  for (const ModelOutput& output : options_.outputs) AddOutput(output);
  for (const Node& node : nodes_)
    if (const Value& value = values_[node.output]; value.uses == 0)
      Reject(value.name, ": nothing uses its output");
  NarrowToNewest();
  ConvertSequences();
  PlaceValues();
  PlaceGradients();
}

void Model::AddOutput(const ModelOutput& output) {
  const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& each) {
    return output.block.empty() ? each.output == nodes_.back().output
                                : values_[each.output].name == output.block;
  });
  if (node == nodes_.end())
    throw BlockError(output.where,
                     fmt::format("output {}: there is no block {}", output.name, output.block));
  Value& value = values_[node->output];
  const std::string role =
      output.block.empty() ? "comes last" : fmt::format("gives the output {}", Escape(output.name));
  if (ColumnsOf(value.shape) != 1)
    Reject(value.name, fmt::format("{}, so it must give one logit, but it gives {}", role,
                                   Describe(value.shape)));
  if (!node->block->GivesLogit())
    Reject(value.name,
           role +
               ", so it must give a logit: end with an mlp with linear_output: true, or a sum of "
               "logits");
  if (output.loss == Loss::kSquaredError && node->block->GivesProbability())
    Reject(value.name, role +
                           ", which learns by squared_error, but it gives a probability: use "
                           "binary_cross_entropy, or another block");
  if (output.loss == Loss::kSquaredError && node->block->ComparesItems())
    Reject(value.name,
           role +
               ", which learns by squared_error, but it compares an item with others: use "
               "binary_cross_entropy, or the block match");
  if (std::find(outputs_.begin(), outputs_.end(), node->output) != outputs_.end())
    Reject(value.name, "gives two outputs: each needs a block of its own");
  ++value.uses;
  outputs_.push_back(node->output);
}

size_t Model::ValueNamed(const GraphBlock& block, const std::string& name) {
  for (size_t value = 0; value < values_.size(); ++value)
    if (values_[value].name == name) return value;
  if (const std::optional<size_t> part = AddPart(name)) return *part;
  if (const std::string feature = UnescapeName(FeatureOfInput(name));
      feature.ends_with(kNegativesSuffix))
    RejectBlock(
        block.where, block.name,
        fmt::format(
            ": there are no negatives '{}': say how many model.negatives.{} training draws for "
            "each sample",
            feature,
            feature.substr(0, feature.size() - std::string_view(kNegativesSuffix).size())));
  if (const std::string feature = FeatureOfInput(name); !feature.empty())
    RejectBlock(
        block.where, block.name,
        fmt::format(": the dataset has no categorical feature '{}'", UnescapeName(feature)));
  RejectBlock(block.where, block.name, fmt::format(": there is no input '{}' before it", name));
}

// The value of "embeddings.NAME" for a pooled feature, if that is what this is.
std::optional<size_t> Model::AddPart(const std::string& input) {
  const std::string feature = FeatureOfInput(input);
  int64_t column = 0;
  for (const TableInput& table : options_.tables) {
    if (table.name != feature) {
      column += table.dim;
      continue;
    }
    parts_.push_back({.value = values_.size(), .column = column, .dim = table.dim});
    values_.push_back({.name = input, .shape = {{feature, table.dim}}, .has_gradient = true});
    return parts_.back().value;
  }
  return std::nullopt;
}

void Model::AddBlock(const GraphBlock& block) {
  Node node;
  std::vector<Shape> shapes;
  std::vector<std::optional<SequenceId>> sequences;
  std::vector<char> padded;
  bool d_inputs = false;
  for (const std::string& name : block.inputs) {
    node.inputs.push_back(ValueNamed(block, name));
    Value& value = values_[node.inputs.back()];
    ++value.uses;
    shapes.push_back(value.shape);
    sequences.push_back(value.sequence);
    padded.push_back(value.padded);
    d_inputs |= value.has_gradient;
  }
  if (!shapes.empty() && std::all_of(shapes.begin(), shapes.end(),
                                     [](const Shape& shape) { return ColumnsOf(shape) == 0; }))
    RejectBlock(block.where, block.name,
                fmt::format(": its {} empty: the dataset has no features for it",
                            block.inputs.size() == 1 ? "input is" : "inputs are"));
  const size_t parameters = layout_.parameters().size();
  std::vector<ItemRequest> requests(items_.size());  // indices begin after those of other blocks
  node.block = block.options.Make({.name = block.name,
                                   .where = block.where,
                                   .inputs = shapes,
                                   .sequences = sequences,
                                   .padded = padded,
                                   .d_inputs = d_inputs,
                                   .seed = options_.seed,
                                   .parameters = layout_,
                                   .buffers = buffers_,
                                   .items = &requests});
  for (size_t i = items_.size(); i < requests.size(); ++i) AddItem(block, requests[i]);
  layout_.SetBlock(parameters, block.name);
  CheckNames(block, parameters);
  CheckNegatives(block, node);
  if (!node.block->TakesLogits())
    for (const size_t input : node.inputs) values_[input].is_float32 = false;
  node.output = values_.size();
  values_.push_back({.name = block.name,
                     .shape = node.block->shape(),
                     .is_float32 = node.block->GivesLogit(),  // until a block takes it that cannot
                     .has_gradient = d_inputs || layout_.parameters().size() > parameters,
                     .sequence = node.block->sequence(),
                     .padded = IsPadded(*node.block, shapes, sequences, padded),
                     .layout = node.block->GivesAs(),
                     .where = block.where});
  nodes_.push_back(std::move(node));
}

void Model::AddItem(const GraphBlock& block, const ItemRequest& request) {
  const auto table =
      std::find_if(options_.tables.begin(), options_.tables.end(), [&](const TableInput& each) {
        return each.name == EscapeName(request.feature) && !each.multi_hot;
      });
  if (table == options_.tables.end())
    RejectBlock(
        block.where, block.name,
        fmt::format(
            ": item: the dataset has no categorical feature '{}' with one value in each row",
            Escape(request.feature)));
  items_.push_back({.table = static_cast<size_t>(table - options_.tables.begin()),
                    .popularity = request.popularity});
}

// Whether the pooled rows can be read where the block's output has them, because nothing else uses
// them: then they are never copied.
bool Model::HoldsPooledRows(const Node& node) const {
  const auto at = std::find(node.inputs.begin(), node.inputs.end(), kEmbeddingsValue);
  return values_[kEmbeddingsValue].uses == 1 && at != node.inputs.end() &&
         node.block->ColumnOf(static_cast<size_t>(at - node.inputs.begin()));
}

void Model::PlaceValues() {
  values_[kDenseValue].place = {Place::kDense};
  values_[kEmbeddingsValue].place = {Place::kFeatures, 0};
  for (size_t s = 0; s < options_.sequences.size(); ++s)
    values_[kEmbeddingsValue + 1 + s].place = {Place::kFeatures, 1 + s};
  for (const Part& part : parts_) {
    values_[part.value].place = {Place::kBuffer, buffers_.Add(part.dim)};
  }
  int64_t widest = 0;
  for (const Part& part : parts_) widest = std::max(widest, part.dim);
  if (widest > 0) part_row_ = buffers_.AddRow(widest);
  features_columns_ = pooled_columns();
  for (const Node& node : nodes_) {
    Value& output = values_[node.output];
    if (HoldsPooledRows(node)) {
      const auto at = std::find(node.inputs.begin(), node.inputs.end(), kEmbeddingsValue);
      first_pooled_ = *node.block->ColumnOf(static_cast<size_t>(at - node.inputs.begin()));
      features_columns_ = ColumnsOf(output.shape);
      output.place = {Place::kFeatures};
      continue;
    }
    output.place = {Place::kBuffer, AddBuffer(output, output.is_float32 ? Precision::kFloat32
                                                                        : options_.precision)};
  }
}

void Model::PlaceGradients() {
  for (Value& value : values_) {
    if (!value.has_gradient) continue;
    value.gradient = value.place.where == Place::kFeatures
                         ? Place{Place::kGradientOfFeatures, value.place.index}
                         : Place{Place::kBuffer, AddBuffer(value, options_.precision)};
  }
  std::vector<bool> written(values_.size());
  for (const size_t output : outputs_) written[output] = true;  // by Backward()
  for (size_t n = nodes_.size(); n-- > 0;) {
    for (const size_t input : nodes_[n].inputs) {
      const Value& value = values_[input];
      nodes_[n].d_inputs.push_back(written[input]
                                       ? Place{Place::kBuffer, AddBuffer(value, options_.precision)}
                                       : value.gradient);
      written[input] = value.has_gradient;
    }
  }
}

std::unique_ptr<Model::Workspace> Model::MakeWorkspace(int64_t n) const {
  auto workspace = std::make_unique<Workspace>();
  workspace->dense.Reshape(n, options_.num_dense, options_.precision);
  for (std::vector<BlockedMatrix>* matrices : {&workspace->features, &workspace->d_features}) {
    matrices->emplace_back(n, features_columns_, options_.precision);
    for (const SequenceInput& sequence : options_.sequences)
      matrices->emplace_back(n, sequence.positions * sequence.dim, options_.precision);
  }
  workspace->lengths.assign(options_.sequences.size(),
                            std::vector<int32_t>(static_cast<size_t>(n)));
  for (size_t i = 0; i < items_.size(); ++i) {
    SampleItems& items = workspace->items.emplace_back();
    items.first.resize(static_cast<size_t>(n));
    std::iota(items.first.begin(), items.first.end(), 0);
    items.log_shares.resize(static_cast<size_t>(n));
  }
  workspace->logits = AlignedBuffer(num_outputs() * static_cast<size_t>(n));
  workspace->d_logits = AlignedBuffer(num_outputs() * static_cast<size_t>(n));
  workspace->buffers = buffers_.Make(n);
  workspace->rows = buffers_.MakeRows();
  const auto add_rows = [&](const Value& value, BlockedMatrix* matrix) {
    if (matrix != nullptr && value.layout != VectorLayout::kColumns)
      workspace->in_rows.push_back({matrix, *value.sequence, value.layout});
  };
  for (const Node& node : nodes_) {
    Workspace::Matrices& matrices = workspace->nodes.emplace_back();
    const auto at = [&](const Place& place) { return At(place, workspace.get()); };
    matrices.output = at(values_[node.output].place);
    matrices.d_output = at(values_[node.output].gradient);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& input = values_[node.inputs[i]];
      matrices.inputs.push_back(at(input.place));
      matrices.d_inputs.push_back(at(node.d_inputs[i]));
      BlockedMatrix* const whole = at(input.gradient);
      matrices.added_to.push_back(matrices.d_inputs[i] == whole ? nullptr : whole);
      add_rows(input, matrices.d_inputs[i]);
    }
    add_rows(values_[node.output], matrices.output);
    add_rows(values_[node.output], matrices.d_output);
  }
  for (const size_t output : outputs_) {
    workspace->outputs.push_back(At(values_[output].place, workspace.get()));
    workspace->d_outputs.push_back(At(values_[output].gradient, workspace.get()));
  }
  return workspace;
}

std::vector<int64_t> Model::WorkspaceColumns() const {
  std::vector<int64_t> columns = {options_.num_dense, features_columns_, features_columns_};
  for (const SequenceInput& sequence : options_.sequences)
    columns.insert(columns.end(), 2, sequence.positions * sequence.dim);
  const std::vector<int64_t> buffers = buffers_.columns();
  columns.insert(columns.end(), buffers.begin(), buffers.end());
  return columns;
}

BlockedMatrix* Model::At(const Place& place, Workspace* workspace) {
  switch (place.where) {
    case Place::kNone:
      return nullptr;
    case Place::kDense:
      return &workspace->dense;
    case Place::kFeatures:
      return &workspace->features[place.index];
    case Place::kGradientOfFeatures:
      return &workspace->d_features[place.index];
    case Place::kBuffer:
      return &workspace->buffers[place.index];
  }
  return nullptr;
}

bool Model::ComparesItems(size_t output) const { return NodeOf(output)->block->ComparesItems(); }

void Model::CheckComparisonsAreOutputs() const {
  for (const Node& node : nodes_)
    for (const size_t input : node.inputs)
      for (const Node& from : nodes_)
        if (from.output == input && from.block->ComparesItems())
          Reject(values_[node.output].name,
                 fmt::format("takes the logit of {}, which is another one in training than in "
                             "predictions: only model.outputs may take it",
                             values_[input].name));
}

void Model::Reject(const std::string& block, const std::string& what) const {
  const auto value = std::find_if(values_.begin(), values_.end(),
                                  [&](const Value& each) { return each.name == block; });
  RejectBlock(value == values_.end() ? "" : value->where, block, what);
}

std::string Model::ComparesSamples() const {
  for (const Node& node : nodes_)
    if (node.block->ComparesSamples()) return values_[node.output].name;
  return "";
}

double Model::FlopsPerSample(int64_t samples) const {
  double flops = 0;
  for (const Node& node : nodes_) {
    const bool d_inputs = std::any_of(node.inputs.begin(), node.inputs.end(),
                                      [&](size_t v) { return values_[v].has_gradient; });
    flops += node.block->Flops(d_inputs) +
             static_cast<double>(samples) * node.block->FlopsPerPair(d_inputs);
  }
  return flops;
}

double Model::ActivationsPerSample() const {
  double values = 0;
  for (const Parameter& parameter : layout_.parameters())
    if (parameter.shape.size() == 2)
      values += static_cast<double>(parameter.shape[0] * parameter.rows_per_sample);
  return values;
}

void Model::CopyParts(Workspace* workspace) const {
  for (const Part& part : parts_)
    At(values_[part.value].place, workspace)
        ->SetColumns(0, workspace->features[0], first_pooled_ + part.column, part.dim);
}

void Model::AddGradientsOfParts(Workspace* workspace) const {
  BlockedMatrix& all = workspace->d_features[0];
  const bool only_parts = values_[kEmbeddingsValue].uses == 0;
  for (const Part& part : parts_) {
    const int64_t column = first_pooled_ + part.column;
    const BlockedMatrix& gradient = *At(values_[part.value].gradient, workspace);
    if (only_parts) {
      all.SetColumns(column, gradient, 0, part.dim);
      continue;
    }
    float* const sum = workspace->rows[part_row_].data();
    for (int64_t i = 0; i < all.rows(); ++i) {
      all.GetRow(i, column, sum, part.dim);
      for (int64_t d = 0; d < part.dim; ++d) sum[d] += gradient.at(i, d);
      all.SetRow(i, column, sum, part.dim);
    }
  }
}

void Model::Forward(const PackedParameters& parameters, Workspace* workspace) const {
  const BlockPass pass{parameters,          workspace->buffers, workspace->rows,
                       workspace->training, workspace->lengths, workspace->items};
  for (const Workspace::Rows& each : workspace->in_rows)
    each.matrix->Reshape(RowsOf(each.sequence, each.layout, pass, workspace->dense.rows()),
                         each.matrix->columns(), each.matrix->precision());
  CopyParts(workspace);
  for (size_t n = 0; n < nodes_.size(); ++n)
    nodes_[n].block->Forward(pass, workspace->nodes[n].inputs, workspace->nodes[n].output);
  float* logit = workspace->logits.data();
  for (const BlockedMatrix* output : workspace->outputs)
    for (int64_t i = 0; i < output->rows(); ++i) *logit++ = output->at(i, 0);
}

void Model::Backward(const PackedParameters& parameters, WeightGradients* gradients,
                     Workspace* workspace) const {
  const BlockPass pass{parameters,          workspace->buffers, workspace->rows,
                       workspace->training, workspace->lengths, workspace->items};
  const float* d_logit = workspace->d_logits.data();
  for (BlockedMatrix* d_output : workspace->d_outputs)
    for (int64_t i = 0; i < d_output->rows(); ++i) d_output->Set(i, 0, *d_logit++);
  for (size_t n = nodes_.size(); n-- > 0;) {
    const Workspace::Matrices& w = workspace->nodes[n];
    if (w.d_output == nullptr) continue;
    nodes_[n].block->Backward(pass, w.inputs, *w.output, w.d_output, gradients, w.d_inputs);
    for (size_t i = 0; i < w.d_inputs.size(); ++i)
      if (w.added_to[i] != nullptr) Add(*w.d_inputs[i], w.added_to[i]);
  }
  AddGradientsOfParts(workspace);
}

std::vector<std::string> ModelTypeNames() {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : Catalogue()) names.push_back(entry.name);
  return names;
}

std::vector<GraphOutput> BlocksOfOutputs(const std::vector<ModelOutput>& outputs) {
  std::vector<GraphOutput> blocks;
  for (const ModelOutput& output : outputs)
    if (!output.block.empty()) blocks.push_back({output.block, output.where});
  return blocks;
}

Graph GraphOf(const ModelOptions& options) {
  if (options.type == kBlocksType) return options.blocks;
  if (const CatalogueEntry* entry = FindEntry(options.type)) {
    std::vector<GraphBlock> blocks = entry->graph(options);
    for (GraphBlock& block : blocks) block.where = "model.type: " + options.type;
    return SortedGraph(std::move(blocks), BlocksOfOutputs(options.outputs));
  }
  Fail(ErrorCode::kConfig, "model.type: unknown model '{}'", options.type);
}

int64_t RowColumns(const std::string& type, int64_t embedding_dim) {
  const CatalogueEntry* entry = FindEntry(type);
  if (entry == nullptr) return embedding_dim;
  return (entry->has_embedding ? embedding_dim : 0) + (entry->has_first_order ? 1 : 0);
}

std::unique_ptr<Model> MakeModel(const ModelOptions& options) {
  if (options.num_dense == 0 && options.tables.empty() && options.sequences.empty())
    Fail(ErrorCode::kConfig, "the dataset has neither dense nor categorical features");
  return std::make_unique<Model>(options, GraphOf(options));
}

}  // namespace renzan
