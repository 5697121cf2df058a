#pragma once

// The options of the catalogue's models besides their types: keys of `model` in the configuration.
// Each entry of the catalogue says which of them it has (catalogue/catalogue.h).

#include <cstdint>
#include <string>
#include <vector>

namespace renzan {

class ConfigFields;

struct ModelSizes {
  std::vector<int64_t> bottom_mlp = {512, 256, 64};  // hidden layers; embedding_dim is appended
  std::vector<int64_t> top_mlp = {512, 256};         // hidden layers of the last or deep MLP
  std::vector<int64_t> second_mlp;                   // of finalmlp's second; empty: as top_mlp
  std::vector<int64_t> cin_layers = {16, 16};        // feature maps of each
  int attention_layers = 3;
  int64_t attention_heads = 2;
  int64_t attention_dim = 32;                 // of what each head gives
  std::vector<int64_t> attention_mlp = {64};  // hidden layers of the MLP of target attention
  int mask_blocks = 3;
  double mask_ratio = 2;    // hidden units of a mask's MLP: so many times the width of its input
  int64_t mask_width = 64;  // of a block's output
  int experts = 4;          // of MMoE, and those that PLE's tasks share
  int task_experts = 2;     // of each task of PLE, in each level
  int expert_levels = 2;    // of PLE
  std::vector<int64_t> expert_mlp = {256, 128};  // layers of an expert
  std::vector<std::string> item_features;  // of two_tower; first the one that identifies the item
  std::vector<int64_t> tower_mlp = {256, 64};  // layers of a tower
  double temperature = 0.05;                   // of the towers' products
  bool popularity = true;                      // InBatchSoftmax::popularity
  int cross_layers = 3;
  int64_t cross_rank = 512;            // 0: whole matrices
  int cross_experts = 0;               // 0: a single product
  double dropout = 0;                  // after the hidden layers of all MLPs, in training
  std::string activation = "relu";     // of those layers: one of ActivationLayerNames()
  std::string normalization = "none";  // of those layers: one of NormalizationNames()

  // Only those of models of this type.
  void Describe(const std::string& type, ConfigFields& fields);
};

}  // namespace renzan
