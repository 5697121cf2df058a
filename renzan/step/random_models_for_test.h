#pragma once

// Random models and configurations, for properties that hold for all of them.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "renzan/config/train_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/model/blocks/activation.h"
#include "renzan/model/blocks/activation_layer.h"
#include "renzan/model/blocks/append.h"
#include "renzan/model/blocks/batch_norm.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/first_order.h"
#include "renzan/model/blocks/gate.h"
#include "renzan/model/blocks/hstu.h"
#include "renzan/model/blocks/in_batch_softmax.h"
#include "renzan/model/blocks/l2_normalize.h"
#include "renzan/model/blocks/layer_norm.h"
#include "renzan/model/blocks/match.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/multiply.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/positions.h"
#include "renzan/model/blocks/product_of_probabilities.h"
#include "renzan/model/blocks/project.h"
#include "renzan/model/blocks/sampled_softmax.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/blocks/target_attention.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/model.h"
#include "renzan/nn/activation.h"
#include "renzan/optim/sparse_optimizers.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/step/draws_for_test.h"
#include "renzan/step/random_interactions_for_test.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

struct RandomModel {
  DatasetSchema schema{.label = "label"};
  TrainConfig config;
  int64_t steps = 0;
};

// Blocks that give a sequence of the same dimension. Returns the name of the last one.
inline std::string DrawSequenceBlocks(Draws& draw, const std::string& sequence, int64_t dim,
                                      std::vector<GraphBlock>* blocks) {
  std::string last = EmbeddingsOf(sequence);
  for (int left = 1 + draw.Below(4); left > 0; --left) {
    const std::string name = fmt::format("{}_{}", sequence, left), before = last;
    const auto add = [&](const std::string& end, const BlockOptions& block) {
      blocks->push_back({name + end, {last}, block});
      last = name + end;
    };
    switch (draw.Below(dim > 1 ? 9 : 4)) {
      case 0:
        add("", Positions{});
        break;
      case 1:
        add("_attended", SelfAttention{.heads = draw.Size(3),
                                       .dim = draw.Size(9),
                                       .residual = draw.OneIn(2),
                                       .causal = draw.OneIn(2),
                                       .relu = draw.OneIn(2)});
        add("", Mlp{.layers = {draw.Size(20), dim},
                    .activation = draw.Of(ActivationNames()),
                    .linear_output = draw.OneIn(2),
                    .dropout = draw.OneIn(3) ? 0.3 : 0,
                    .per_vector = true});
        break;
      case 2:
        blocks->push_back({name + "_last", {kDenseInput}, Mlp{.layers = {dim}}});
        blocks->push_back({name, {last, name + "_last"}, Append{}});
        last = name;
        break;
      case 3:
        add("_activated", ActivationFunction{draw.Of(ActivationNames())});
        blocks->push_back({name, {before, last}, draw.OneIn(2) ? BlockOptions(Sum{}) : Product{}});
        last = name;
        break;
      case 4:
        add("", LayerNorm{.per_vector = true});
        break;
      case 5:
        add("", L2Normalize{.per_vector = true, .epsilon = 0.1});
        break;
      case 7:
        add("_projected", Project{draw.Size(9)});
        add("", Project{dim});
        break;
      case 8:
        add("_factors", Factors{});
        add("", Project{dim});
        break;
      case 6:
        add("", Hstu{.heads = draw.Size(3),
                     .dim = 1 + draw.Size(9),
                     .positions = draw.OneIn(2) ? "relative" : "none"});
        break;
    }
  }
  return last;
}

// Pools a sequence of vectors, or attends to it. Returns the name of the result.
inline std::string DrawPooled(Draws& draw, const std::string& feature, int64_t dim,
                              std::vector<GraphBlock>* blocks) {
  const std::string name = "pooled_" + feature;
  const std::string sequence = DrawSequenceBlocks(draw, feature, dim, blocks);
  if (draw.OneIn(2)) {
    blocks->push_back(
        {name, {sequence}, Pool{draw.Of(std::vector<std::string>{"sum", "mean", "last"})}});
    return name;
  }
  blocks->push_back({name + "_query", {kDenseInput}, Mlp{.layers = {dim}}});
  blocks->push_back({name,
                     {name + "_query", sequence},
                     TargetAttention{.layers = {draw.Size(20)},
                                     .activation = draw.Of(ActivationNames()),
                                     .softmax = draw.OneIn(2)}});
  return name;
}

// Experts over some of these values, mixed by a gate over another one.
inline void DrawGate(Draws& draw, const std::string& name, const std::vector<std::string>& values,
                     std::vector<GraphBlock>* blocks) {
  std::vector<std::string> inputs = {draw.Of(values)};
  const int64_t width = draw.Size(20);
  for (int e = 2 + draw.Below(3); e > 0; --e) {
    inputs.push_back(fmt::format("{}_expert_{}", name, e));
    blocks->push_back({inputs.back(), {draw.Of(values)}, Mlp{.layers = {width}}});
  }
  blocks->push_back({name, inputs, Gate{}});
}

// Compares items with a query: the logit of one of their features whose negatives are drawn.
inline void DrawSampledSoftmax(Draws& draw, const std::string& item, int64_t dim,
                               std::vector<GraphBlock>* blocks) {
  blocks->push_back({"query", {kDenseInput}, Mlp{.layers = {dim}, .linear_output = true}});
  blocks->push_back({"scored",
                     {"query", EmbeddingsOf(item), EmbeddingsOf(item + kNegativesSuffix)},
                     SampledSoftmax{draw.Of<double>({1, 0.5})}});
}

// A feature with one value; "": there is none.
inline std::string OneValueFeature(const DatasetSchema& schema) {
  for (const CategoricalFeature& feature : schema.categorical)
    if (!feature.multi_hot) return feature.name;
  return "";
}

// A random graph over dense features, embeddings and sequences: some blocks, each of which takes
// inputs and blocks before it, and a logit of all that nothing else uses.
inline std::map<std::string, BlockConfig> DrawBlocks(Draws& draw, const DatasetSchema& schema,
                                                     const ModelConfig& model) {
  std::vector<GraphBlock> blocks;
  std::vector<std::string> values = {kDenseInput, kEmbeddingsInput};
  bool have_factors = true;  // all embeddings: they have two columns or more
  for (const CategoricalFeature& feature : schema.categorical) {
    const auto own = model.tables.find(feature.table_name());
    const int64_t dim = own != model.tables.end() && own->second.embedding_dim > 0
                            ? own->second.embedding_dim
                            : model.embedding_dim;
    have_factors &= dim > 1;
    if (model.negatives.contains(feature.name)) {
      DrawSampledSoftmax(draw, feature.name, dim, &blocks);
    }
    if (feature.max_length == 0) {
      if (draw.OneIn(5)) values.push_back(EmbeddingsOf(feature.name));
      continue;
    }
    values.push_back(DrawPooled(draw, feature.name, dim, &blocks));
  }
  for (int left = 1 + draw.Below(6); left > 0; --left) {
    const std::string name = fmt::format("b{}", blocks.size());
    switch (draw.Below(11)) {
      default:
        DrawInteraction(draw, name, values, &blocks);
        break;
      case 7: {
        const int64_t width = draw.Size(70);
        for (const char* side : {"_query", "_item"})
          blocks.push_back({name + side, {draw.Of(values)}, Mlp{.layers = {width}}});
        const std::vector<std::string> sides = {name + "_query", name + "_item"};
        const std::string item = draw.OneIn(3) ? "" : OneValueFeature(schema);
        if (draw.OneIn(2)) {
          blocks.push_back({name, sides, Match{draw.Of<double>({1, 0.3})}});
          break;
        }
        blocks.push_back(
            {name, sides,
             InBatchSoftmax{
                 .temperature = 2.5, .item = item, .popularity = !item.empty() && draw.OneIn(2)}});
        continue;  // only an output may take it
      }
      case 5:
        DrawGate(draw, name, values, &blocks);
        break;
      case 6:
        blocks.push_back({name, {draw.Of(values)}, L2Normalize{.epsilon = 0.1}});
        break;
      case 0:
        blocks.push_back(
            {name,
             {draw.Of(values)},
             Mlp{.layers = {draw.Size(40), draw.Size(40)},
                 .activation = draw.OneIn(2) ? "relu" : draw.Of(ActivationLayerNames()),
                 .dropout = draw.OneIn(3) ? 0.3 : 0,
                 .normalization = draw.OneIn(2) ? "none" : "batch"}});
        break;
      case 1:
        blocks.push_back({name,
                          {draw.Of(values)},
                          draw.OneIn(3) ? Cross{.layers = draw.Below(3), .kind = "vector"}
                                        : Cross{.layers = draw.Below(3),
                                                .rank = draw.OneIn(2) ? 0 : draw.Size(9)}});
        break;
      case 2:
        blocks.push_back({name, {draw.Of(values), draw.Of(values)}, Concat{}});
        break;
      case 4: {
        std::string vectors = kEmbeddingsInput;
        if (have_factors && draw.OneIn(2)) {
          vectors = name + "_factors";
          blocks.push_back({vectors, {kEmbeddingsInput}, Factors{}});
        }
        blocks.push_back({name + "_vectors", {vectors}, Project{draw.Size(20)}});
        blocks.push_back({name + "_attended",
                          {name + "_vectors"},
                          SelfAttention{.heads = draw.Size(3),
                                        .dim = 1 + draw.Size(9),
                                        .residual = draw.OneIn(2),
                                        .causal = draw.OneIn(2)}});
        blocks.push_back({name, {name + "_attended"}, LayerNorm{.per_vector = draw.OneIn(2)}});
        break;
      }
      case 3: {
        const std::string value = draw.Of(values);
        blocks.push_back({name, {value, value}, Product{}});
        break;
      }
    }
    values.push_back(name);
  }
  std::vector<std::string> unused;
  for (const std::string& value : values)
    if (std::none_of(blocks.begin(), blocks.end(), [&](const GraphBlock& block) {
          return std::find(block.inputs.begin(), block.inputs.end(), value) != block.inputs.end();
        }))
      unused.push_back(value);
  if (unused.empty()) unused = {kEmbeddingsInput};
  blocks.push_back({"outputs_of_all", unused, Concat{}});
  blocks.push_back({"outputs", {"outputs_of_all"}, BatchNorm{.momentum = 0.3}});
  blocks.push_back({"logit", {"outputs"}, Mlp{.layers = {1}, .linear_output = true}});
  return BlocksOf(blocks);
}

// Lets some multi-hot features share a table, and some be sequences.
inline void DrawSharing(Draws& draw, DatasetSchema* schema) {
  CategoricalFeature* first = nullptr;
  for (CategoricalFeature& feature : schema->categorical) {
    // At least one is pooled.
    if (feature.multi_hot && !draw.OneIn(3) && &feature != &schema->categorical[0])
      feature.max_length = 3 + draw.Below(3);
    if (!draw.OneIn(3)) continue;
    if (first == nullptr) {
      first = &feature;
      continue;
    }
    feature.table = first->name;
    feature.num_embeddings = first->num_embeddings;
  }
}

// Items clicked before, and perhaps negatives of the next one.
inline void DrawClicked(Draws& draw, bool with_negatives, RandomModel* model) {
  std::vector<CategoricalFeature>& features = model->schema.categorical;
  const int items = 1 + draw.Size(500);
  features.push_back({.name = "item", .num_embeddings = items});
  features.push_back({.name = "clicked",
                      .num_embeddings = items,
                      .multi_hot = true,
                      .table = "item",
                      .max_length = 3 + draw.Below(3)});
  if (with_negatives) model->config.model.negatives = {{"item", draw.Size(6)}};
}

// Further labels, some of which are numbers, and outputs that learn from them. Each label, the
// first included, may be missing from rows of some models.
inline void DrawTasks(Draws& draw, RandomModel* model) {
  ModelConfig& m = model->config.model;
  for (int more = m.type == "esmm" ? 1 : draw.Below(3); more > 0; --more)
    model->schema.further_labels.push_back(
        {.name = fmt::format("l{}", more),
         .rule = m.type != "esmm" && draw.OneIn(3) ? kNumberRule : "",
         .optional = draw.OneIn(2)});
  model->schema.label_optional = !model->schema.further_labels.empty() && draw.OneIn(2);
  m.experts = draw.Size(3);
  m.task_experts = draw.Size(2);
  m.expert_levels = 1 + draw.Below(2);
  m.expert_mlp = {draw.Size(30)};
  const CatalogueEntry* entry = FindEntry(m.type);
  if (entry != nullptr) {
    // Models of one output may learn from any label, but no comparison from a number.
    if (!entry->has_several_outputs() && draw.OneIn(2))
      m.outputs["only"] = {.label = entry->compares_items ? model->schema.label
                                                          : draw.Of(model->schema.label_names())};
    return;
  }
  for (const auto& [name, block] : m.blocks)
    if (block.type == InBatchSoftmax::kType || block.type == SampledSoftmax::kType)
      m.outputs["of_" + name] = {.block = name, .label = "label"};
  if (!m.outputs.empty()) m.outputs["first"] = {.block = "logit", .label = "label"};
  if (model->schema.further_labels.empty()) return;
  const auto add = [&](const GraphBlock& block) { m.blocks.merge(BlocksOf({block})); };
  m.outputs["first"] = {.block = "logit", .label = "label"};
  for (const DatasetLabel& label : model->schema.further_labels) {
    const std::string block = "logit_" + label.name;
    add({block, {"outputs"}, Mlp{.layers = {1}, .linear_output = true}});
    m.outputs[label.name] = {.block = block, .weight = draw.Of<double>({1, 0.3})};
  }
  add({"product", {"logit", "logit_l1"}, ProductOfProbabilities{}});
  m.outputs["product"] =
      draw.OneIn(2) ? OutputConfig{.loss = "none"} : OutputConfig{.label = "label"};
}

// Some blocks and tables that are frozen, or trained at other rates.
inline void DrawFrozen(Draws& draw, RandomModel* model) {
  for (const CategoricalFeature& feature : model->schema.categorical)
    if (draw.OneIn(4)) model->config.model.tables[feature.table_name()].frozen = true;
  const auto layout = MakeModel(ModelOptionsOf(model->config, model->schema))->layout();
  for (const Parameter& parameter : layout.parameters())
    if (draw.OneIn(8))
      model->config.optimizer.blocks[parameter.block] = {
          .learning_rate_factor = draw.Of<double>({0, 0.5, 2}), .frozen = draw.OneIn(2)};
}

// Every third seed draws a graph, and those between them the catalogue's models in turn.
inline std::string TypeDrawnBy(uint64_t seed) {
  if (seed % 3 == 0) return kBlocksType;
  const std::vector<std::string> types = ModelTypeNames();
  return types[(seed - seed / 3 - 1) % types.size()];
}

// From seed 0 to this one, every model of the catalogue is drawn.
inline uint64_t LastSeedOfTheCatalogue() {
  const uint64_t last = ModelTypeNames().size() - 1;
  return 3 * (last / 2) + 1 + last % 2;
}

inline RandomModel DrawModel(uint64_t seed) {
  using Words = std::vector<std::string>;
  Draws draw(seed);
  RandomModel model;
  model.steps = 4 + draw.Below(8);
  for (int d = 1 + draw.Below(6); d > 0; --d) model.schema.dense.push_back(fmt::format("d{}", d));
  for (int t = 1 + draw.Below(6); t > 0; --t)
    model.schema.categorical.push_back({fmt::format("c{}", t), draw.Size(4000), draw.OneIn(2)});

  TrainConfig& c = model.config;
  c.model.type = TypeDrawnBy(seed);
  const CatalogueEntry* const entry = FindEntry(c.model.type);
  // An item has one id.
  if (c.model.type == "two_tower") model.schema.categorical[0].multi_hot = false;
  // Most blocks for sequences are in no model of the catalogue.
  if (c.model.type == kBlocksType || draw.OneIn(2)) DrawSharing(draw, &model.schema);
  const bool clicked = entry != nullptr ? entry->needs_sequences : draw.OneIn(3);
  const bool with_negatives = entry == nullptr || entry->takes_negatives;
  if (clicked) DrawClicked(draw, with_negatives, &model);
  c.seed = seed;
  c.checkpoint.every = "0";
  c.checkpoint.every_steps = 1 + draw.Below(3);
  const auto widths = [&] {
    std::vector<int64_t> sizes;
    for (int layer = draw.Below(3); layer > 0; --layer) sizes.push_back(draw.Size(70));
    return sizes;
  };
  c.model.embedding_dim = draw.Of<int64_t>({1, 2, 4, 6, 8, 12, 16, 20, 32});
  c.model.bottom_mlp = widths();
  c.model.top_mlp = widths();
  c.model.cross_layers = draw.Below(3);
  c.model.cross_rank = draw.Size(20);
  c.model.pooling = draw.Of(Words{"sum", "mean"});
  c.model.dropout = draw.OneIn(3) ? 0.25 : 0;
  c.numerics.virtual_workers = draw.Of<int>({1, 2, 4, 8, 16});
  c.training.batch_size = c.numerics.virtual_workers * draw.Size(40);
  c.numerics.precision = draw.Of(Words{"fp32", "bf16"});
  c.numerics.embedding_precision = draw.Of(Words{"fp32", "fp16", "bf16"});
  c.numerics.row_blocks = draw.Of<int>({0, 1, 2, 4, 8});
  for (const int columns : {2, 3, 4})
    if (RowColumns(c.model.type, c.model.embedding_dim) % columns == 0 && draw.OneIn(3))
      c.numerics.column_blocks = columns;
  for (const CategoricalFeature& feature : model.schema.categorical)
    if (draw.OneIn(4)) c.model.tables[feature.table_name()].row_blocks = draw.Of<int>({1, 4, 16});
  for (const CategoricalFeature& feature : model.schema.categorical)
    if (draw.OneIn(4)) {
      // Its rows have a column more where there is a first-order weight.
      const int64_t columns = c.numerics.column_blocks * draw.Size(9);
      const int64_t dim = columns - (RowColumns(c.model.type, 1) == 2 ? 1 : 0);
      if (dim > 0) c.model.tables[feature.table_name()].embedding_dim = dim;
    }
  c.model.attention_mlp = widths();
  if (c.model.type == kBlocksType) {
    c.model.blocks = DrawBlocks(draw, model.schema, c.model);
  } else if (c.model.type != "two_tower" && (!entry->needs_sequences || with_negatives)) {
    for (const CategoricalFeature& feature : model.schema.categorical)
      if (feature.max_length > 0 && feature.table != "item") {
        c.model.tables[feature.name].pooling = c.model.pooling;
        c.model.tables[feature.table_name()].pooling = c.model.pooling;
      }
  }

  const Words initial = {"uniform", "normal", "xavier_uniform", "zeros"};
  c.model.initial_values = draw.Of(initial);
  for (const CategoricalFeature& feature : model.schema.categorical)
    if (draw.OneIn(4)) {
      c.model.tables[feature.table_name()].initial_values = draw.Of(initial);
      c.model.tables[feature.table_name()].learning_rate_factor = draw.Of<double>({0.5, 2});
    }

  c.comm.forward = draw.Of(RowCodecNames());
  c.comm.backward = draw.Of(RowCodecNames());
  c.comm.dense = draw.Of(Words{"fp32", "fp16", "bf16"});
  if (c.comm.backward != "fp32" && draw.OneIn(2)) c.comm.error_feedback_rows = 1 << draw.Below(8);
  c.optimizer.dense.type = draw.Of(Words{"sgd", "adagrad", "adam"});
  c.optimizer.dense.learning_rate = 0.01;
  c.optimizer.sparse.type = draw.Of(SparseOptimizerNames());
  c.optimizer.sparse.weight_decay = draw.OneIn(3) && c.optimizer.sparse.type != "ftrl" ? 0.2 : 0;
  c.optimizer.sparse.weight_decay_mode = draw.Of(Words{"decoupled", "l2"});
  const bool all_rows = draw.OneIn(3);
  for (const SparseOptimizerInfo& info : SparseOptimizers())
    if (all_rows && c.optimizer.sparse.type == info.name && info.moves_all_rows) {
      c.optimizer.sparse.rows = "all";
      c.numerics.embedding_precision = "fp32";
    }
  c.optimizer.max_gradient_norm = draw.OneIn(3) ? 0.05 : 0;
  if (c.optimizer.sparse.type != "ftrl" && draw.OneIn(2)) {
    ScheduleConfig& schedule = c.optimizer.schedule;
    schedule.type = draw.Of(Words{"polynomial", "cosine", "one_cycle"});
    schedule.decay_steps = draw.Size(12);
    schedule.curve = draw.Of(Words{"cosine", "linear"});
    schedule.rise_share = draw.Of<double>({0, 0.3, 1});
    if (schedule.type != "one_cycle") schedule.warmup_steps = draw.Below(4);
  }
  if (draw.OneIn(2)) model.schema.weight = "w";
  c.training.loss.pos_weight = draw.Of<double>({1, 1, 0.3, 20});
  c.training.loss.label_smoothing = draw.OneIn(3) ? 0.1 : 0;
  c.model.second_mlp = widths();
  c.model.cin_layers = widths();
  c.model.attention_layers = 1 + draw.Below(2);
  c.model.attention_heads = draw.Size(3);
  c.model.attention_dim = draw.Size(12);
  c.model.mask_blocks = 1 + draw.Below(3);
  c.model.mask_width = 1 + draw.Size(30);
  c.model.normalization = draw.Of(Words{"none", "none", "batch"});
  // Those of a virtual worker need two samples.
  if (c.training.batch_size == c.numerics.virtual_workers) c.training.batch_size *= 2;
  c.model.item_features = {OneValueFeature(model.schema)};
  if (draw.OneIn(2)) c.model.item_features.push_back(model.schema.categorical.back().name);
  c.model.tower_mlp = {draw.Size(50), draw.Size(50)};
  c.model.temperature = draw.Of<double>({0.5, 2});
  c.model.popularity = draw.OneIn(2);
  c.model.cross_experts = draw.OneIn(2) ? 0 : draw.Size(3);
  DrawTasks(draw, &model);
  DrawFrozen(draw, &model);
  // Bags with weights, of which some share tables with others.
  for (CategoricalFeature& feature : model.schema.categorical)
    if (feature.multi_hot && feature.max_length == 0 && draw.OneIn(2))
      feature.weights = feature.name + "_weights";
  return model;
}

}  // namespace renzan
