#pragma once

// A cross network. Takes any vectors, gives one of the same width.
//
// - matrix, DCNv2's: x_{l+1} = x_0 ⊙ (W_l x_l + b_l) + x_l, with W_l [width, width], or a product
//   of two matrices of a low rank, W_l V_l with V_l [rank, width] and W_l [width, rank]. Wang et
//   al., "DCN V2: Improved Deep & Cross Network", WWW 2021. Parameters: "<name>.<l>.v", if the rank
//   is low, "<name>.<l>.w" and "<name>.<l>.bias".
// - vector, DCN's: x_{l+1} = x_0 (w_l · x_l) + b_l + x_l, with w_l [1, width]. Wang et al., "Deep &
//   Cross Network for Ad Click Predictions", 2017. Parameters: "<name>.<l>.w", "<name>.<l>.bias".
// - matrix with experts, DCNv2's mixture of low ranks: W_l x_l becomes Σ_e g_e W_le tanh(C_le tanh(
//   V_le x_l)) with C_le [rank, rank] and g = softmax(G_l x_l), where each layer has gates of its
//   own. Parameters: "<name>.<l>.<e>.v", "….c" and "….w", "<name>.<l>.gate" [experts, width] and
//   "<name>.<l>.bias".

#include <cstdint>
#include <memory>
#include <string>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Cross {
  int layers = 3;
  int64_t rank = 0;  // 0: whole matrices
  std::string kind = "matrix";
  int experts = 0;  // 0: a single product

  static constexpr const char* kType = "cross";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

inline constexpr int kMostExperts = 64;

// Of kind vector (cross_vector.cc), and with experts (cross_experts.cc).
std::unique_ptr<Block> MakeVectorCross(const Cross& options, const BlockPlace& place);
std::unique_ptr<Block> MakeExpertsCross(const Cross& options, const BlockPlace& place);

}  // namespace renzan
