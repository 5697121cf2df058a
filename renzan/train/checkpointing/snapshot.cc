#include "renzan/train/checkpointing/snapshot.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "renzan/base/file/file.h"
#include "renzan/checkpoint/quantize.h"

namespace renzan {
namespace {

std::span<float> AsFloats(std::span<std::byte> bytes) {
  CHECK(bytes.size() % sizeof(float) == 0);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// A tensor with a copy of the current values.
TensorSource Copied(std::string key, std::vector<int64_t> shape, std::span<const float> values) {
  const auto copy = std::make_shared<const std::vector<float>>(values.begin(), values.end());
  return {std::move(key), std::move(shape), DType::kF32,
          [copy](size_t offset, std::span<std::byte> out) {
            std::memcpy(out.data(), std::as_bytes(std::span(*copy)).data() + offset, out.size());
          }};
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
    const uint64_t weights = options.quantize ? dim + 2 * sizeof(float) : dim * sizeof(float);
    bytes.full += rows * (dim * sizeof(float) + state);
    bytes.incremental +=
        static_cast<uint64_t>(table.dirty.size()) * (sizeof(int32_t) + weights + state);
  }
  return bytes;
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
  const int64_t rows = table.spec.num_embeddings, dim = table.spec.embedding_dim;
  const std::string key = TableKey(table.spec) + ".weight";
  File file{.name = "table." + EscapeName(table.spec.name) + ".safetensors", .tensors = {}};
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape,
                       const std::shared_ptr<CopyOnWrite>& view) {
    file.tensors.push_back({name, shape, DType::kF32, [view](size_t, std::span<std::byte> out) {
                              view->ReadNext(AsFloats(out));
                            }});
  };
  table.weights_view = std::make_shared<CopyOnWrite>(table.weights.data(), rows, dim);
  add(key, {rows, dim}, table.weights_view);
  if (table.state.size() > 0) {
    const std::vector<int64_t> shape = StateShape(table);
    table.state_view =
        std::make_shared<CopyOnWrite>(table.state.data(), rows, shape.size() == 1 ? 1 : dim);
    add(fmt::format("{}/{}", key, model_.embeddings().state_name()), shape, table.state_view);
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
  const auto view_of = [&](const AlignedBuffer& values, int64_t width) {
    return std::make_shared<CopyOnWrite>(values.data(), table.spec.num_embeddings, width,
                                         &dirty->set());
  };
  const auto add = [&](const std::string& name, std::vector<int64_t> shape,
                       const std::shared_ptr<CopyOnWrite>& view) {
    file.tensors.push_back(
        {name, std::move(shape), DType::kF32, [view, dirty](size_t, std::span<std::byte> out) {
           view->ReadNext(dirty->list(), AsFloats(out));
         }});
  };
  table.weights_view = view_of(table.weights, dim);
  if (quantize) {
    QuantizedSources rows = QuantizeRows(key + ".weight", n, dim,
                                         [view = table.weights_view, dirty](std::span<float> row) {
                                           view->ReadNext(dirty->list(), row);
                                         });
    files_.push_back(
        {"table." + EscapeName(table.spec.name) + ".q8.safetensors", {std::move(rows.codes)}});
    for (TensorSource& source : rows.scales) file.tensors.push_back(std::move(source));
  } else {
    add(key + ".weight", {n, dim}, table.weights_view);
  }
  if (table.state.size() > 0) {
    std::vector<int64_t> shape = StateShape(table);
    shape[0] = n;
    table.state_view = view_of(table.state, shape.size() == 1 ? 1 : dim);
    add(fmt::format("{}.weight/{}", key, model_.embeddings().state_name()), shape,
        table.state_view);
  }
  files_.push_back(std::move(file));
}

}  // namespace renzan
