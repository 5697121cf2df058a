#include "renzan/cuda/embedding_engine.h"

#include <algorithm>
#include <limits>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cuda/table_rows.cuh"

namespace renzan::cuda {
namespace {

constexpr int64_t kBitsPerWord = 32;

}  // namespace

EmbeddingEngine::EmbeddingEngine(const DeviceModelOptions& options, int64_t features,
                                 int64_t first_column, const Stream& stream)
    : stream_(stream) {
  std::vector<DeviceTable> tables;
  int64_t first_row = 0;
  for (const DeviceTableOptions& table : options.tables) {
    Table& mine = tables_.emplace_back();
    mine.rows = table.rows;
    mine.dim = table.dim;
    mine.state_width = table.state_width;
    mine.first_row = first_row;
    mine.weights = DeviceMemory(static_cast<size_t>(table.rows * table.dim) * sizeof(float));
    mine.states = DeviceMemory(static_cast<size_t>(table.rows * mine.state_width) * sizeof(float));
    mine.block_begin = DeviceMemory(table.block_begin.size() * sizeof(int64_t));
    CopyToDevice(table.block_begin.data(), mine.block_begin.bytes(), mine.block_begin.as<void>(),
                 stream_);
    tables.push_back({.weights = mine.weights.as<float>(),
                      .state = mine.states.as<float>(),
                      .dim = static_cast<int32_t>(table.dim),
                      .column = static_cast<int32_t>(first_column + table.first_column),
                      .first_row = first_row,
                      .mean = table.mean,
                      .num_blocks = static_cast<int32_t>(table.block_begin.size()) - 1,
                      .block_begin = mine.block_begin.as<int64_t>()});
    first_row += table.rows;
  }
  if (first_row > std::numeric_limits<uint32_t>::max())
    Fail(ErrorCode::kConfig,
         "device: cuda: the tables have {}, but at most 2^32 - 1 can be in a GPU's memory",
         Counted(first_row, "row"));
  shape_ = {.num_tables = static_cast<int>(tables.size()),
            .samples = options.own_samples(),
            .virtual_workers = options.own_virtual_workers,
            .total_rows = first_row,
            .features = features,
            .precision = options.model.precision,
            .optimizer = options.sparse.type};
  device_tables_ = DeviceMemory(tables.size() * sizeof(DeviceTable));
  CopyToDevice(tables.data(), device_tables_.bytes(), device_tables_.as<void>(), stream_);
  touched_ = DeviceMemory(static_cast<size_t>((first_row + kBitsPerWord - 1) / kBitsPerWord) *
                          sizeof(uint32_t));
  stream_.Synchronize();
}

// cudaFree waits for a running step that still uses this memory.
bool EmbeddingEngine::Reserve(int64_t lookups) {
  if (sorted_ && lookups <= capacity_) return false;
  // Multi-hot batches differ in size: some spare room avoids most reallocations.
  capacity_ = sorted_ ? std::min(lookups + lookups / 4, kMaxDeviceLookups) : lookups;
  sorted_.reset();
  update_.reset();
  sorted_.emplace(shape_, capacity_);
  update_.emplace(shape_, sorted_->leaf_floats());
  return true;
}

void EmbeddingEngine::Pool(const DeviceLookups& lookups, void* features,
                           const Stream& stream) const {
  PoolFeatures(shape_, device_tables_.as<DeviceTable>(), lookups, features, stream.get());
}

void EmbeddingEngine::Sort(const DeviceLookups& lookups, const Stream& stream) {
  sorted_->Sort(device_tables_.as<DeviceTable>(), lookups, stream.get());
}

void EmbeddingEngine::Update(const SparseStepOnDevice* step, const DeviceLookups& lookups,
                             const void* d_features, int32_t* finite, const Stream& stream) {
  update_->Apply(step, device_tables_.as<DeviceTable>(), lookups, sorted_->by_row(), d_features,
                 touched_.as<uint32_t>(), finite, stream.get());
}

void EmbeddingEngine::SetRows(size_t table, int64_t first, std::span<const float> weights,
                              std::span<const float> states) {
  const Table& to = tables_[table];
  CopyToDevice(weights.data(), weights.size_bytes(), to.weights.as<float>() + first * to.dim,
               stream_);
  CopyToDevice(states.data(), states.size_bytes(), to.states.as<float>() + first * to.state_width,
               stream_);
  stream_.Synchronize();
}

// While one piece is visited, the next one is gathered and copied.
void EmbeddingEngine::TakeUpdatedRows(VisitRows visit) {
  std::vector<uint32_t> touched(touched_.bytes() / sizeof(uint32_t));
  CopyToHost(touched_.as<void>(), touched_.bytes(), touched.data(), stream_);
  Check(cudaMemsetAsync(touched_.as<void>(), 0, touched_.bytes(), stream_.get()),
        "clearing what was updated");
  stream_.Synchronize();
  Piece pieces[2];
  size_t turn = 0;
  const auto take = [&] {
    if (!pieces[turn].rows.empty()) Gather(&pieces[turn]);
    turn = 1 - turn;
    if (!pieces[turn].rows.empty()) Visit(pieces[turn], visit);
    pieces[turn].rows.clear();
  };
  for (size_t t = 0; t < tables_.size(); ++t) {
    for (int64_t row = 0; row < tables_[t].rows; ++row) {
      const int64_t bit = tables_[t].first_row + row;
      const uint32_t word = touched[static_cast<size_t>(bit / kBitsPerWord)];
      if (word == 0 && bit % kBitsPerWord == 0) {
        row += kBitsPerWord - 1;  // no row of a whole word
        continue;
      }
      if ((word >> (bit % kBitsPerWord) & 1) == 0) continue;
      pieces[turn].table = t;
      pieces[turn].rows.push_back(static_cast<int32_t>(row));
      if (std::ssize(pieces[turn].rows) == kReturningRows) take();
    }
    if (!pieces[turn].rows.empty()) take();
  }
  take();
}

void EmbeddingEngine::Gather(Piece* piece) const {
  const Table& from = tables_[piece->table];
  const int64_t n = std::ssize(piece->rows);
  const size_t weights = piece->rows.size() * static_cast<size_t>(from.dim);
  const size_t states = piece->rows.size() * static_cast<size_t>(from.state_width);
  const size_t bytes = (weights + states) * sizeof(float);
  piece->rows_on_device.Reserve(piece->rows.size() * sizeof(int32_t));
  piece->values_on_device.Reserve(bytes);
  piece->values.Reserve(bytes);
  const int32_t* const rows = piece->rows_on_device.as<int32_t>();
  float* const values = piece->values_on_device.as<float>();
  CopyToDevice(piece->rows.data(), piece->rows.size() * sizeof(int32_t),
               piece->rows_on_device.as<void>(), stream_);
  GatherTableRows(from.weights.as<float>(), from.dim, rows, n, values, stream_.get());
  GatherTableRows(from.states.as<float>(), from.state_width, rows, n, values + weights,
                  stream_.get());
  CopyToHost(values, bytes, piece->values.as<void>(), stream_);
  piece->arrived.Record(stream_.get());
}

void EmbeddingEngine::Visit(const Piece& piece, VisitRows visit) const {
  piece.arrived.Synchronize();
  const Table& from = tables_[piece.table];
  const size_t weights = piece.rows.size() * static_cast<size_t>(from.dim);
  const size_t states = piece.rows.size() * static_cast<size_t>(from.state_width);
  const float* const values = piece.values.as<float>();
  visit(piece.table, piece.rows, {values, weights}, {values + weights, states});
}

}  // namespace renzan::cuda
