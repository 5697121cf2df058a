#include "renzan/checkpoint/model_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace renzan {
namespace {

// Notes that a[i] and b[i] of tensor `key` differ.
void NoteDifference(const std::string& key, int64_t index, double a, double b, ModelDiff& diff) {
  if (!diff.first) diff.first = {key, index, a, b};
  const double distance = std::abs(a - b);
  diff.max_abs_difference =
      std::max(diff.max_abs_difference,
               std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
}

void ReadValues(CheckpointReader& reader, const std::string& key, int64_t first,
                std::span<float> out) {
  reader.Read(key, first, out);
}
template <typename T>
void ReadValues(CheckpointReader& reader, const std::string& key, int64_t first, std::span<T> out) {
  reader.ReadBytes(key, first, std::as_writable_bytes(out));
}

// The parts [first, first + size) of a tensor, in order, outside of which the two have the same
// values.
struct Part {
  int64_t first = 0, size = 0;
};
std::vector<Part> PartsThatMayDiffer(const TensorInfo& tensor, CheckpointReader& a,
                                     CheckpointReader& b) {
  const int64_t elements = NumElements(tensor.shape);
  // Equal values of another type are rounded otherwise.
  if (a.Info(tensor.key) != b.Info(tensor.key)) return {{0, elements}};
  const std::string sha256 = a.RecordedSha256(tensor.key);
  if (!sha256.empty() && sha256 == b.RecordedSha256(tensor.key)) return {};
  const auto of_a = a.FindSparseTable(tensor.key), of_b = b.FindSparseTable(tensor.key);
  if (!of_a || !of_b || of_a->initial != of_b->initial) return {{0, elements}};
  std::set<int32_t> rows(of_a->rows.begin(), of_a->rows.end());
  rows.insert(of_b->rows.begin(), of_b->rows.end());
  for (CheckpointReader* reader : {&a, &b}) {
    const std::vector<int32_t> replaced = reader->ReplacedRows(tensor.key);
    rows.insert(replaced.begin(), replaced.end());
  }
  const int64_t width = tensor.shape[0] == 0 ? 0 : elements / tensor.shape[0];
  std::vector<Part> parts;
  for (const int32_t row : rows) parts.push_back({row * width, width});
  return parts;
}

template <typename T>
void DiffTensor(const TensorInfo& tensor, CheckpointReader& a, CheckpointReader& b,
                ModelDiff& diff) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<T> x(kPiece), y(kPiece);
  const int64_t elements = NumElements(tensor.shape);
  int64_t differing = 0;
  for (const Part& part : PartsThatMayDiffer(tensor, a, b)) {
    for (int64_t first = part.first; first < part.first + part.size; first += kPiece) {
      const size_t size = static_cast<size_t>(std::min(kPiece, part.first + part.size - first));
      ReadValues(a, tensor.key, first, std::span(x).first(size));
      ReadValues(b, tensor.key, first, std::span(y).first(size));
      for (size_t i = 0; i < size; ++i) {
        if (std::memcmp(&x[i], &y[i], sizeof(T)) == 0) continue;
        ++differing;
        NoteDifference(tensor.key, first + static_cast<int64_t>(i), static_cast<double>(x[i]),
                       static_cast<double>(y[i]), diff);
      }
    }
  }
  ++diff.tensors;
  diff.values += elements;
  diff.values_differing += differing;
  diff.tensors_differing += differing > 0 ? 1 : 0;
}

void DiffTensors(const TensorInfo& tensor, CheckpointReader& a, CheckpointReader& b,
                 ModelDiff& diff) {
  switch (tensor.dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return DiffTensor<float>(tensor, a, b, diff);
    case DType::kF64:
      return DiffTensor<double>(tensor, a, b, diff);
    case DType::kI64:
      return DiffTensor<int64_t>(tensor, a, b, diff);
    case DType::kI32:
      return DiffTensor<int32_t>(tensor, a, b, diff);
    case DType::kI16:
      return DiffTensor<int16_t>(tensor, a, b, diff);
    case DType::kI8:
      return DiffTensor<int8_t>(tensor, a, b, diff);
    case DType::kU8:
    case DType::kBool:
      return DiffTensor<uint8_t>(tensor, a, b, diff);
  }
}

bool Comparable(const TensorInfo& a, const TensorInfo& b) {
  return a.shape == b.shape && (a.dtype == b.dtype || (IsFloat(a.dtype) && IsFloat(b.dtype)));
}

}  // namespace

ModelDiff DiffModels(CheckpointReader& a, CheckpointReader& b) {
  a.VerifyFiles();
  b.VerifyFiles();
  ModelDiff diff;
  diff.step_a = a.step();
  diff.step_b = b.step();
  for (const std::string& key : b.keys())
    if (IsModelTensor(key) && !a.Contains(key)) diff.only_in_b.push_back(key);
  for (const std::string& key : a.keys()) {
    if (!IsModelTensor(key)) continue;
    if (!b.Contains(key)) {
      diff.only_in_a.push_back(key);
    } else if (!Comparable(a.Info(key), b.Info(key))) {
      diff.other_shape.push_back(key);
    } else {
      DiffTensors(a.Info(key), a, b, diff);
    }
  }
  return diff;
}

}  // namespace renzan
