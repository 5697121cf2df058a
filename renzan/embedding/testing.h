#pragma once

// The rows and states of a store, for tests.

#include <vector>

#include "renzan/embedding/row_store.h"

namespace renzan {

// [rows, dim], as float32.
inline std::vector<float> WeightsOf(RowStore& store) {
  const RowLayout& layout = store.layout();
  std::vector<std::byte> encoded(static_cast<size_t>(store.num_rows() * layout.row_bytes()));
  store.CopyWeights(0, store.num_rows(), encoded.data());
  std::vector<float> weights(static_cast<size_t>(store.num_rows() * layout.dim));
  Decode(layout.type, encoded.data(), weights);
  return weights;
}

// [rows, state_width].
inline std::vector<float> StateOf(RowStore& store) {
  std::vector<float> state(static_cast<size_t>(store.num_rows() * store.layout().state_width));
  store.CopyState(0, store.num_rows(), std::as_writable_bytes(std::span(state)).data());
  return state;
}

}  // namespace renzan
