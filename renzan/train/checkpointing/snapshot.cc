#include "renzan/train/checkpointing/snapshot.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "renzan/base/file/file.h"
#include "renzan/checkpoint/quantize.h"

namespace renzan {
namespace {

// A tensor with a copy of the current values.
TensorSource Copied(std::string key, std::vector<int64_t> shape, std::span<const float> values) {
  const auto copy = std::make_shared<const std::vector<float>>(values.begin(), values.end());
  return {std::move(key), std::move(shape), DType::kF32,
          [copy](size_t offset, std::span<std::byte> out) {
            std::memcpy(out.data(), std::as_bytes(std::span(*copy)).data() + offset, out.size());
          }};
}

int64_t StateRowBytes(const EmbeddingTable& table) {
  const std::vector<int64_t> shape = StateShape(table);
  return (shape.size() == 1 ? 1 : shape[1]) * static_cast<int64_t>(sizeof(float));
}

// Lists the rows of a set on first use by the writer, so that training does not wait for it.
class LazyRows {
 public:
  explicit LazyRows(RowSet set) : set_(std::move(set)) {}
  const RowSet& set() const { return set_; }
  const std::vector<int32_t>& list() {
    if (list_.empty()) list_ = set_.Rows();
    return list_;
  }

 private:
  RowSet set_;
  std::vector<int32_t> list_;
};

}  // namespace

std::string TableKey(const TableSpec& spec) { return "embedding." + EscapeName(spec.name); }

std::vector<int64_t> StateShape(const EmbeddingTable& table) {
  const int64_t rows = table.spec.num_embeddings, dim = table.spec.embedding_dim;
  if (static_cast<int64_t>(table.state.size()) == rows) return {rows};
  return {rows, dim};
}

SnapshotBytes EstimateBytes(HybridModel& model, const SnapshotOptions& options) {
  SnapshotBytes bytes;
  if (options.with_dense) {
    const size_t arrays = 1 + model.dense_optimizer().states().size();
    bytes.full = bytes.incremental = arrays * model.parameters().size() * sizeof(float);
  }
  for (EmbeddingTable& table : model.embeddings().tables()) {
    const uint64_t rows = static_cast<uint64_t>(table.spec.num_embeddings);
    const uint64_t dim = static_cast<uint64_t>(table.spec.embedding_dim);
    const uint64_t state = rows == 0 ? 0 : table.state.size() / rows * sizeof(float);
    const uint64_t row = static_cast<uint64_t>(table.weights.row_bytes());
    const uint64_t weights = options.quantize ? dim + 2 * sizeof(float) : row;
    bytes.full += rows * (row + state);
    bytes.incremental +=
        static_cast<uint64_t>(table.dirty.size()) * (sizeof(int32_t) + weights + state);
  }
  return bytes;
}

uint64_t ModelSnapshot::File::bytes() const {
  uint64_t sum = 0;
  for (const TensorSource& tensor : tensors)
    sum += static_cast<uint64_t>(NumElements(tensor.shape)) * BytesOf(tensor.dtype);
  return sum;
}

ModelSnapshot::ModelSnapshot(HybridModel& model, const SnapshotOptions& options) : model_(model) {
  if (options.with_dense) AddDense();
  for (EmbeddingTable& table : model.embeddings().tables()) {
    CHECK(!table.weights_view);
    if (options.incremental) {
      AddDirtyRows(table, options.quantize);
    } else {
      AddWholeTable(table);
      dirty_before_.push_back(std::exchange(table.dirty, RowSet(table.spec.num_embeddings)));
    }
  }
}

ModelSnapshot::~ModelSnapshot() {
  for (EmbeddingTable& table : model_.embeddings().tables()) {
    table.weights_view.reset();
    table.state_view.reset();
  }
}

void ModelSnapshot::Abandon() {
  for (size_t t = 0; t < dirty_before_.size(); ++t)
    model_.embeddings().tables()[t].dirty.AddAll(dirty_before_[t]);
  dirty_before_.clear();
}

void ModelSnapshot::AddDense() {
  File file{.name = "dense.safetensors", .tensors = {}};
  for (const Parameter& parameter : model_.model().layout().parameters()) {
    const size_t offset = static_cast<size_t>(parameter.offset);
    const size_t size = static_cast<size_t>(parameter.size);
    file.tensors.push_back(
        Copied(parameter.name, parameter.shape, model_.parameters().span().subspan(offset, size)));
    for (DenseOptimizer::State& state : model_.dense_optimizer().states())
      file.tensors.push_back(Copied(parameter.name + "/" + state.name, parameter.shape,
                                    state.values.span().subspan(offset, size)));
  }
  files_.push_back(std::move(file));
}

void ModelSnapshot::AddWholeTable(EmbeddingTable& table) {
  const std::string key = TableKey(table.spec) + ".weight";
  File file{.name = "table." + EscapeName(table.spec.name) + ".safetensors", .tensors = {}};
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape, DType dtype,
                       const std::shared_ptr<CopyOnWrite>& view) {
    file.tensors.push_back(
        {name, shape, dtype, [view](size_t, std::span<std::byte> out) { view->ReadNext(out); }});
  };
  table.weights_view =
      std::make_shared<CopyOnWrite>(table.weights.bytes(), table.weights.row_bytes());
  add(key, {table.spec.num_embeddings, table.spec.embedding_dim}, DTypeOf(table.weights.type()),
      table.weights_view);
  if (table.state.size() > 0) {
    table.state_view =
        std::make_shared<CopyOnWrite>(std::as_bytes(table.state.span()), StateRowBytes(table));
    add(fmt::format("{}/{}", key, model_.embeddings().state_name()), StateShape(table), DType::kF32,
        table.state_view);
  }
  files_.push_back(std::move(file));
}

void ModelSnapshot::AddDirtyRows(EmbeddingTable& table, bool quantize) {
  const auto dirty = std::make_shared<LazyRows>(table.dirty);
  const int64_t n = dirty->set().size(), dim = table.spec.embedding_dim;
  const std::string key = TableKey(table.spec);
  File file{.name = "table." + EscapeName(table.spec.name) + ".safetensors", .tensors = {}};
  file.tensors.push_back(
      {key + ".rows", {n}, DType::kI32, [dirty](size_t offset, std::span<std::byte> out) {
         std::memcpy(out.data(), reinterpret_cast<const std::byte*>(dirty->list().data()) + offset,
                     out.size());
       }});
  const auto view_of = [&](std::span<const std::byte> values, int64_t row_bytes) {
    return std::make_shared<CopyOnWrite>(values, row_bytes, &dirty->set());
  };
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, DType dtype,
                       const std::shared_ptr<CopyOnWrite>& view) {
    file.tensors.push_back(
        {name, std::move(shape), dtype,
         [view, dirty](size_t, std::span<std::byte> out) { view->ReadNext(dirty->list(), out); }});
  };
  const FloatType type = table.weights.type();
  table.weights_view = view_of(table.weights.bytes(), table.weights.row_bytes());
  if (quantize) {
    const auto encoded =
        std::make_shared<std::vector<std::byte>>(static_cast<size_t>(table.weights.row_bytes()));
    QuantizedSources rows =
        QuantizeRows(key + ".weight", n, dim,
                     [view = table.weights_view, dirty, type, encoded](std::span<float> row) {
                       view->ReadNext(dirty->list(), *encoded);
                       Decode(type, encoded->data(), row);
                     });
    files_.push_back(
        {"table." + EscapeName(table.spec.name) + ".q8.safetensors", {std::move(rows.codes)}});
    for (TensorSource& source : rows.scales) file.tensors.push_back(std::move(source));
  } else {
    add(key + ".weight", {n, dim}, DTypeOf(type), table.weights_view);
  }
  if (table.state.size() > 0) {
    std::vector<int64_t> shape = StateShape(table);
    shape[0] = n;
    table.state_view = view_of(std::as_bytes(table.state.span()), StateRowBytes(table));
    add(fmt::format("{}.weight/{}", key, model_.embeddings().state_name()), shape, DType::kF32,
        table.state_view);
  }
  files_.push_back(std::move(file));
}

}  // namespace renzan
