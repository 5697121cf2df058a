#include "renzan/embedding/table.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "renzan/base/philox.h"

namespace renzan {

EmbeddingTable::EmbeddingTable(const TableSpec& table_spec, FloatType type,
                               const SparseOptimizerOptions& optimizer,
                               InitialValues initial_values, uint64_t seed, ThreadPool& pool)
    : spec(table_spec),
      weights(type, spec.num_embeddings, spec.embedding_dim),
      state(static_cast<size_t>(spec.num_embeddings *
                                StateFloatsPerRow(optimizer.type, spec.embedding_dim))),
      rounding_key(PhiloxKey(seed, ("rounding/embedding." + spec.name + ".weight").c_str())),
      dirty(spec.num_embeddings) {
  if (initial_values == InitialValues::kZero) return;
  const uint64_t key = PhiloxKey(seed, ("init/embedding." + spec.name + ".weight").c_str());
  const float bound = static_cast<float>(std::sqrt(1.0 / static_cast<double>(spec.num_embeddings)));
  const size_t dim = static_cast<size_t>(spec.embedding_dim);
  pool.ParallelRanges(static_cast<size_t>(spec.num_embeddings), [&](int, size_t begin, size_t end) {
    std::vector<float> values(dim);
    for (size_t row = begin; row < end; ++row) {
      for (size_t column = 0; column < dim; column += 4) {
        const Philox::Block block = Philox::Draw(key, row, column / 4);
        for (size_t i = 0; i < std::min<size_t>(4, dim - column); ++i)
          values[column + i] = bound * (2.0f * Philox::Uniform(block[i]) - 1.0f);
      }
      weights.Set(row * dim, values);
    }
  });
  std::fill_n(state.data(), state.size(), static_cast<float>(optimizer.initial_accumulator));
}

}  // namespace renzan
