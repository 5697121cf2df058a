#pragma once

// A small model for tests, saved as full checkpoints and increments.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/checkpoint/quantize.h"
#include "renzan/checkpoint/writer.h"

namespace renzan {

struct TestModel {
  static constexpr int64_t kRows = 10, kDim = 4;

  std::vector<float> weight = {1, 2, 3, 4, 5, 6}, state = {.1f, .2f, .3f, .4f, .5f, .6f};
  std::vector<float> table = std::vector<float>(kRows * kDim, 0.25f);
  std::vector<float> row_state = std::vector<float>(kRows, 1);
  std::vector<int64_t> counts = {3, 4, 5};  // of a metric
  FloatType table_type = FloatType::kFloat32;

  // The values that are saved.
  std::vector<float> SavedTable() const {
    std::vector<float> values = table;
    RoundTrip(table_type, values);
    return values;
  }
  TensorSource TableSource(int64_t rows, const std::vector<float>& values) const {
    const auto bytes =
        std::make_shared<std::vector<std::byte>>(EncodedBytes(table_type, values.size()));
    Encode(table_type, values, bytes->data());
    return {"embedding.C1.weight",
            {rows, kDim},
            DTypeOf(table_type),
            [bytes](size_t offset, std::span<std::byte> out) {
              std::copy_n(bytes->begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
            }};
  }

  std::vector<TensorSource> Dense() const {
    return {SourceOf("bottom.0.weight", {3, 2}, weight),
            SourceOf("bottom.0.weight/adagrad", {3, 2}, state)};
  }
  std::vector<TensorSource> Table() const {
    return {TableSource(kRows, table),
            SourceOf("embedding.C1.weight/rowwise_adagrad", {kRows}, row_state)};
  }

  // Changes what an optimizer would change when it updates `row`.
  void Update(int32_t row, float by) {
    constexpr float kGradient[kDim] = {1, 1.7f, 2.9f, 4};
    for (int64_t column = 0; column < kDim; ++column)
      table[static_cast<size_t>(row * kDim + column)] += by * kGradient[column];
    row_state[static_cast<size_t>(row)] += by * by;
    weight[0] += by;
    counts[0] += 1;
  }

  // A saved model, as two workers would write it. Returns model_sha256.
  std::string Save(const std::string& dir, int64_t step = 7) const {
    CheckpointWriter writer(dir);
    const WriteOptions options{.hash_tensors = true};
    CheckpointManifest manifest{.step = step, .unix_ms = 1'700'000'000'000, .config = "seed: 1\n"};
    manifest.files.push_back(CheckpointFile::FromJson(
        WriteCheckpointFile(writer.location(), "table.C1.safetensors", Table(), options).ToJson()));
    manifest.files.push_back(
        WriteCheckpointFile(writer.location(), "dense.safetensors", Dense(), options));
    const std::string sha256 = ModelSha256(manifest.files, step);
    writer.Commit(std::move(manifest));
    return sha256;
  }

  // A full checkpoint DIR/step-.., with progress. Returns manifest_sha256.
  std::string SaveFull(const std::string& dir, int64_t step) const {
    CheckpointWriter writer(dir + "/" + CheckpointName(step));
    CheckpointManifest manifest{.step = step, .run = {{"isa", "avx2"}}, .config = "seed: 1\n"};
    const auto write = [&](const std::string& name, const std::vector<TensorSource>& tensors) {
      manifest.files.push_back(WriteCheckpointFile(writer.location(), name, tensors, {}));
    };
    write("dense.safetensors", Dense());
    write("table.C1.safetensors", Table());
    write("progress.safetensors", Progress());
    return writer.Commit(std::move(manifest));
  }

  std::vector<TensorSource> Progress() const {
    return {SourceOf("progress.auc", {static_cast<int64_t>(counts.size())}, counts)};
  }

  // The table's files in an increment with `rows`, whose values are copied.
  using Files = std::vector<std::pair<std::string, std::vector<TensorSource>>>;
  Files ChangedRows(const std::vector<int32_t>& rows, bool int8) const {
    const int64_t n = static_cast<int64_t>(rows.size());
    const auto copy = [](std::vector<float> values) {
      return [values = std::move(values)](size_t offset, std::span<std::byte> out) {
        const auto bytes = std::as_bytes(std::span(values));
        std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
      };
    };
    std::vector<float> changed, states;
    for (const int32_t row : rows) {
      changed.insert(changed.end(), table.begin() + row * kDim, table.begin() + (row + 1) * kDim);
      states.push_back(row_state[static_cast<size_t>(row)]);
    }
    std::vector<TensorSource> tensors = {SourceOf("embedding.C1.rows", {n}, rows)};
    tensors.push_back(
        {"embedding.C1.weight/rowwise_adagrad", {n}, DType::kF32, copy(std::move(states))});
    if (!int8) {
      tensors.push_back(TableSource(n, changed));
      return {{"table.C1.safetensors", std::move(tensors)}};
    }
    QuantizedSources sources = QuantizeRows(
        "embedding.C1.weight", n, kDim, [changed, next = 0](std::span<float> out) mutable {
          std::copy_n(changed.begin() + next, out.size(), out.begin());
          next += static_cast<int>(out.size());
        });
    for (TensorSource& source : sources.scales) tensors.push_back(std::move(source));
    return {{"table.C1.q8.safetensors", {std::move(sources.codes)}},
            {"table.C1.safetensors", std::move(tensors)}};
  }

  // An increment on the full checkpoint at `base_step` in the same directory.
  std::string SaveIncrement(const std::string& dir, int64_t step, int64_t base_step,
                            const std::vector<int32_t>& rows, bool int8 = false) const {
    const std::string base = CheckpointName(base_step);
    CheckpointWriter writer(dir + "/" + CheckpointName(step));
    CheckpointManifest manifest{.kind = CheckpointKind::kIncremental, .step = step};
    manifest.base = {base, CheckpointManifest::Read(dir + "/" + base).manifest_sha256};
    manifest.quantization = int8 ? "int8" : "";
    manifest.config = "seed: 1\n";
    const auto write = [&](const std::string& name, const std::vector<TensorSource>& tensors) {
      manifest.files.push_back(WriteCheckpointFile(writer.location(), name, tensors, {}));
    };
    write("dense.safetensors", Dense());
    for (const auto& [name, tensors] : ChangedRows(rows, int8)) write(name, tensors);
    write("progress.safetensors", Progress());
    return writer.Commit(std::move(manifest));
  }
};

// A checkpoint as a PyTorch program writes it, with a tensor "model.F64/x" [3] of every type that
// holds 1, 2 and 0; the tensor `changed` differs in the last value.
inline void SaveEveryType(const std::string& path, const std::string& changed = "") {
  using enum DType;
  CheckpointWriter writer(path);
  std::vector<TensorSource> tensors;
  const auto add = [&](const std::string& key, DType dtype) {
    std::vector<std::byte> bytes(3 * BytesOf(dtype));
    bytes[0] = std::byte{1};
    bytes[BytesOf(dtype)] = std::byte{2};
    // Changes the sign, exponent or value of a float as well.
    if (key == changed) bytes.back() = std::byte{1};
    tensors.push_back({key, {3}, dtype, [bytes](size_t offset, std::span<std::byte> out) {
                         std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(offset), out.size(),
                                     out.begin());
                       }});
  };
  for (const DType dtype : {kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool})
    add(fmt::format("model.{}/x", Name(dtype)), dtype);
  add("optimizer.F64/step", kF32);
  CheckpointManifest manifest{.step = 1};
  manifest.files = {
      WriteCheckpointFile(writer.location(), "state.safetensors", tensors, {.hash_tensors = true})};
  writer.Commit(manifest);
}

// The message of the kData error that `body` throws.
inline std::string DataErrorOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
    return error.what();
  }
  return "no error";
}

inline void EditFile(const std::string& path, const std::function<void(std::string&)>& edit) {
  std::string content = ReadFile(path);
  edit(content);
  WriteFileAtomically(path, content);
}

}  // namespace renzan
