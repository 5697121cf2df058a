#include "renzan/saving/initialize.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/checkpoint/block_key.h"
#include "renzan/checkpoint/whole_tensors.h"
#include "renzan/embedding/initial_block.h"
#include "renzan/embedding/load_tables.h"
#include "renzan/optim/finite.h"
#include "renzan/saving/resume.h"

namespace renzan {
namespace {

// By key, without blocks.
using WholeTensors = std::map<std::string, WholeTensor>;

WholeTensors ListWholeTensors(const CheckpointReader& reader) {
  WholeTensors tensors;
  for (WholeTensor& tensor : WholeTensorsOf(reader)) {
    const std::string key = tensor.info.key;
    tensors.emplace(key, std::move(tensor));
  }
  return tensors;
}

std::string WeightKey(const TableSpec& table) {
  return BlockKey{.table = EscapeName(table.name)}.Key() + ".weight";
}

const WholeTensor& Find(const CheckpointReader& reader, const WholeTensors& tensors,
                        const std::string& key) {
  const auto found = tensors.find(key);
  if (found == tensors.end()) Fail(ErrorCode::kData, "{} has no tensor '{}'", reader.dir(), key);
  return found->second;
}

void ExpectShape(const CheckpointReader& reader, const WholeTensor& tensor,
                 const std::vector<int64_t>& shape) {
  if (tensor.info.shape != shape)
    Fail(ErrorCode::kData, "{}: tensor '{}' is {}, expected {}", reader.dir(), tensor.info.key,
         ShapeText(tensor.info.shape), ShapeText(shape));
}

// Some columns of a whole tensor's rows, in any order.
class SourceRows {
 public:
  // `width` columns from `first_column` on; of a tensor with one value per row, that.
  SourceRows(const WholeTensor& tensor, int64_t first_column, int64_t width)
      : tensor_(tensor), first_column_(first_column), width_(width) {}

  // Reads rows [n] into `out` [n, width].
  void Read(CheckpointReader& reader, std::span<const int64_t> rows, std::span<float> out) {
    const int64_t row_blocks = std::ssize(tensor_.blocks);
    const size_t width = static_cast<size_t>(width_);
    for (size_t begin = 0, end; begin < rows.size(); begin = end) {
      // Those that lie one after another in a block.
      end = begin + 1;
      while (end < rows.size() && rows[end] == rows[end - 1] + row_blocks) ++end;
      ReadRowsOfBlock(reader, tensor_,
                      {.row_block = static_cast<size_t>(rows[begin] % row_blocks),
                       .first_row = rows[begin] / row_blocks,
                       .num_rows = static_cast<int64_t>(end - begin),
                       .first_column = first_column_,
                       .num_columns = width_},
                      width, out.subspan(begin * width), &part_);
    }
  }

 private:
  const WholeTensor& tensor_;
  int64_t first_column_, width_;
  std::vector<float> part_;
};

// Rows of a block that are taken: local rows of the block, and the rows that they come from.
struct TakenRows {
  std::vector<int64_t> rows, from;
};

TakenRows TakenOf(const EmbeddingShard& shard, const EmbeddingShard::Block& block,
                  const RowOrigins& origins, int64_t first, int64_t n) {
  TakenRows taken;
  for (int64_t row = first; row < first + n; ++row) {
    const int64_t from = origins.Of(row * shard.table.row_blocks + block.row_block);
    if (from < 0) continue;
    taken.rows.push_back(row);
    taken.from.push_back(from);
  }
  return taken;
}

// The values [taken rows, width] of a whole tensor.
std::vector<float> ReadTaken(CheckpointReader& reader, const TakenRows& taken, SourceRows source,
                             int64_t width, const std::string& key) {
  std::vector<float> values(taken.rows.size() * static_cast<size_t>(width));
  source.Read(reader, taken.from, values);
  reader.CheckFinite(key, AllFinite(values));
  return values;
}

// Sets taken rows of a block that differ from what they begin as, so that the others need not be
// saved. `weights` [rows, dim]; `states` [rows, state_width], or empty to keep them. `initial` has
// drawn these rows.
void SetRows(std::span<const int64_t> rows, std::span<const float> weights,
             std::span<const float> states, InitialBlock& initial, EmbeddingShard* shard,
             EmbeddingShard::Block* block) {
  const size_t dim = static_cast<size_t>(shard->dim());
  const size_t width = static_cast<size_t>(shard->store->layout().state_width);
  const auto differs = [&](size_t i) {
    return initial.WeightsDiffer(rows[i], weights.subspan(i * dim, dim)) ||
           (!states.empty() && initial.StateDiffers(states.subspan(i * width, width)));
  };
  for (size_t begin = 0, end; begin < rows.size(); begin = end) {
    end = begin + 1;
    if (!differs(begin)) continue;
    // Those that lie one after another.
    while (end < rows.size() && rows[end] == rows[end - 1] + 1 && differs(end)) ++end;
    const int64_t row = block->first_row + rows[begin];
    shard->store->SetWeights(row, weights.subspan(begin * dim, (end - begin) * dim));
    if (!states.empty())
      shard->store->SetState(row, states.subspan(begin * width, (end - begin) * width));
    if (block->trained)
      for (size_t i = begin; i < end; ++i) block->trained->Add(rows[i]);
  }
}

// A state of a table's rows, and its place in those of this run.
struct SourceState {
  const WholeTensor& tensor;
  StatePart part;
};

std::vector<SourceState> SourceStates(const CheckpointReader& reader, const WholeTensors& tensors,
                                      const RowOrigins& origins, SparseOptimizerType optimizer,
                                      const EmbeddingShard& shard) {
  std::vector<SourceState> states;
  const std::span<const SparseState> names = InfoOf(optimizer).states;
  for (size_t i = 0; i < names.size(); ++i) {
    const WholeTensor& tensor = Find(reader, tensors, WeightKey(shard.table) + "/" + names[i].name);
    const StatePart part = PartOfState(optimizer, i, shard.dim());
    const bool per_row = part.width == 1 && tensor.info.shape.size() == 1;
    ExpectShape(reader, tensor,
                per_row ? std::vector{origins.earlier_rows}
                        : std::vector{origins.earlier_rows, shard.table.embedding_dim});
    states.push_back({tensor, part});
  }
  return states;
}

// The states [taken rows, state_width], or nothing if none are taken.
std::vector<float> ReadStates(CheckpointReader& reader, const TakenRows& taken,
                              const std::vector<SourceState>& states, const EmbeddingShard& shard) {
  if (states.empty()) return {};
  const int64_t width = shard.store->layout().state_width;
  std::vector<float> all(taken.rows.size() * static_cast<size_t>(width));
  for (const auto& [tensor, part] : states) {
    const std::vector<float> values =
        ReadTaken(reader, taken, SourceRows(tensor, shard.first_column(), part.width), part.width,
                  tensor.info.key);
    for (size_t i = 0; i < taken.rows.size(); ++i)
      std::copy_n(values.begin() + static_cast<int64_t>(i) * part.width, part.width,
                  all.begin() + static_cast<int64_t>(i) * width + part.first);
  }
  return all;
}

void LoadBlock(CheckpointReader& reader, const WholeTensors& tensors, const RowOrigins& origins,
               const std::vector<SourceState>& states, EmbeddingShard* shard,
               EmbeddingShard::Block* block) {
  const int64_t dim = shard->dim();
  const std::string key = WeightKey(shard->table);
  const WholeTensor& weights = Find(reader, tensors, key);
  InitialBlock initial(*shard, *block);
  const int64_t rows_at_once = std::max<int64_t>(1, (1 << 16) / dim);
  for (int64_t first = 0; first < block->num_rows; first += rows_at_once) {
    const int64_t n = std::min(rows_at_once, block->num_rows - first);
    const TakenRows taken = TakenOf(*shard, *block, origins, first, n);
    const std::vector<float> read = ReadStates(reader, taken, states, *shard);
    initial.Draw(first, n);
    SetRows(taken.rows,
            ReadTaken(reader, taken, SourceRows(weights, shard->first_column(), dim), dim, key),
            read, initial, shard, block);
  }
}

}  // namespace

void CheckInitialShapes(const CheckpointReader& reader, std::span<const TableSpec> tables,
                        const InitialModel& initial) {
  const WholeTensors tensors = ListWholeTensors(reader);
  for (size_t t = 0; t < tables.size(); ++t)
    if (const RowOrigins& origins = initial.tables[t]; !origins.begins_anew())
      ExpectShape(reader, Find(reader, tensors, WeightKey(tables[t])),
                  {origins.earlier_rows, tables[t].embedding_dim});
}

void LoadInitialModel(CheckpointReader& reader, const InitialModel& initial, ModelState* model) {
  const WholeTensors tensors = ListWholeTensors(reader);
  LoadDense(reader, initial.dense_states, model, initial.other_parameters);
  const SparseOptimizerType optimizer = model->embeddings().optimizer();
  std::map<std::string, const RowOrigins*> origins;
  for (size_t t = 0; t < model->tables().size(); ++t)
    origins[model->tables()[t].name] = &initial.tables[t];
  ForEachBlock(reader, model->embeddings().shards(), model->pool(),
               [&](CheckpointReader& own, EmbeddingShard& shard, EmbeddingShard::Block& block) {
                 const RowOrigins& of_table = *origins.at(shard.table.name);
                 if (of_table.begins_anew()) return;
                 std::vector<SourceState> states;
                 if (initial.row_states)
                   states = SourceStates(own, tensors, of_table, optimizer, shard);
                 LoadBlock(own, tensors, of_table, states, &shard, &block);
               });
  model->embeddings().RowsWereSet();
  model->Changed();
}

}  // namespace renzan
