#include "renzan/model/sizes.h"

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/model/blocks/activation_layer.h"
#include "renzan/model/blocks/block.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/normalization.h"
#include "renzan/model/catalogue/catalogue.h"

namespace renzan {
namespace {

void Layers(const char* key, std::vector<int64_t>* widths, const char* doc, ConfigFields& fields) {
  fields.Field(key, widths, doc);
  fields.Require(std::all_of(widths->begin(), widths->end(),
                             [](int64_t width) { return width >= 1 && width <= kMaxWidth; }),
                 key, "layer sizes must be 1 to 1048576");
}

}  // namespace

void ModelSizes::Describe(const std::string& type, ConfigFields& fields) {
  const CatalogueEntry* entry = FindEntry(type);
  if (entry == nullptr) return;
  if (entry->Has("bottom_mlp"))
    Layers("bottom_mlp", &bottom_mlp, "hidden layers; embedding_dim comes after them", fields);
  if (entry->Has("top_mlp"))
    Layers("top_mlp", &top_mlp,
           "hidden layers of the MLP that gives the logit, or of the deep part", fields);
  if (entry->Has("second_mlp"))
    Layers("second_mlp", &second_mlp, "hidden layers of the second stream; empty: as top_mlp",
           fields);
  if (entry->Has("cin_layers"))
    Layers("cin_layers", &cin_layers,
           "feature maps of the compressed interaction network's layers; empty: no such network",
           fields);
  if (entry->Has("attention_layers"))
    fields.Range("attention_layers", &attention_layers, 1, 64, "of self-attention");
  if (entry->Has("attention_heads"))
    fields.Range("attention_heads", &attention_heads, 1, 256, "of each layer");
  if (entry->Has("attention_dim"))
    fields.Range("attention_dim", &attention_dim, 1, 4096, "of what each head gives");
  if (entry->Has("attention_mlp"))
    Layers("attention_mlp", &attention_mlp,
           "hidden layers of the MLP that compares a candidate with a sequence", fields);
  if (entry->Has("mask_blocks")) fields.Range("mask_blocks", &mask_blocks, 1, 64, "in parallel");
  if (entry->Has("mask_ratio"))
    fields.Range("mask_ratio", &mask_ratio, 0.01, 100,
                 "hidden units of a mask's MLP, in widths of its input");
  if (entry->Has("mask_width"))
    fields.Range("mask_width", &mask_width, 2, kMaxWidth, "of a block's output");
  if (entry->Has("expert_levels")) fields.Range("expert_levels", &expert_levels, 1, 16);
  if (entry->Has("experts"))
    fields.Range("experts", &experts, 1, 256,
                 entry->Has("task_experts") ? "that all tasks share, in each level"
                                            : "that each task mixes by a gate of its own");
  if (entry->Has("task_experts"))
    fields.Range("task_experts", &task_experts, 1, 256, "of each task, in each level");
  if (entry->Has("expert_mlp")) {
    Layers("expert_mlp", &expert_mlp, "layers of an expert", fields);
    fields.Require(!expert_mlp.empty(), "expert_mlp", "must have at least one layer");
  }
  if (entry->Has("item_features"))
    fields.Field("item_features", &item_features,
                 "that the item's tower takes, first the one that identifies the item; the query's "
                 "tower takes all others");
  if (entry->Has("tower_mlp")) {
    Layers("tower_mlp", &tower_mlp, "layers of each tower; the last one is linear", fields);
    fields.Require(!tower_mlp.empty(), "tower_mlp", "must have at least one layer");
  }
  if (entry->Has("temperature"))
    fields.Range("temperature", &temperature, 1e-4, 1e4, "the towers' cosines are divided by it");
  if (entry->Has("popularity"))
    fields.Field("popularity", &popularity,
                 "corrects for how often items are in the training data, and so among negatives");
  if (entry->Has("cross_layers")) fields.Range("cross_layers", &cross_layers, 0, 64);
  if (entry->Has("cross_rank"))
    fields.Range("cross_rank", &cross_rank, 0, 65536, "0: whole matrices");
  if (entry->Has("cross_experts")) {
    fields.Range("cross_experts", &cross_experts, 0, kMostExperts,
                 "a mixture of so many products of cross_rank in each layer; 0: one product");
    fields.Require(cross_experts == 0 || cross_rank > 0, "cross_experts",
                   "need matrices of a low rank: set cross_rank");
  }
  if (entry->Has("dropout")) {
    fields.Range("dropout", &dropout, 0, 1, "after the hidden layers of all MLPs, in training");
    fields.Require(dropout < 1, "dropout", "must be below 1");
  }
  if (entry->Has("activation"))
    fields.Choice("activation", &activation, ActivationLayerNames(), "of the hidden layers");
  if (entry->Has("normalization"))
    fields.Choice("normalization", &normalization, NormalizationNames());
}

}  // namespace renzan
