#pragma once

// Arrow streams made by hand, for tests.

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "renzan/data/arrow/arrow_abi.h"

namespace renzan::testing {

// An array with its type. What precedes `offset` is garbage.
struct TestArray {
  std::string format, name;
  int64_t length = 0, offset = 0, nulls = 0;
  std::vector<std::string> buffers;  // the first holds the validity; empty: NULL
  std::vector<TestArray> children = {};
  std::unique_ptr<TestArray> dictionary = nullptr;
  // What a malformed array breaks after Fill().
  std::function<void(ArrowSchema*)> break_schema = nullptr;
  std::function<void(ArrowArray*)> break_array = nullptr;

  void Fill(ArrowSchema* schema);
  void Fill(ArrowArray* array);

  // What Fill() points to.
  std::vector<const void*> pointers_ = {};
  std::vector<ArrowArray> arrays_ = {};
  std::vector<ArrowArray*> array_pointers_ = {};
  std::vector<ArrowSchema> schemas_ = {};
  std::vector<ArrowSchema*> schema_pointers_ = {};
  ArrowArray dictionary_array_ = {};
  ArrowSchema dictionary_schema_ = {};
};

inline constexpr size_t kGarbage = 3;  // values before each array's offset

template <typename T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The validity bits of an array after the garbage.
template <typename T>
std::string ValidityOf(const std::vector<std::optional<T>>& values) {
  std::string bits((kGarbage + values.size()) / 8 + 1, '\0');
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i])
      bits[(kGarbage + i) / 8] =
          static_cast<char>(bits[(kGarbage + i) / 8] | 1 << (kGarbage + i) % 8);
  return bits;
}

template <typename T>
TestArray ArrayOf(const std::string& format, const std::string& name,
                  const std::vector<std::optional<T>>& values, std::vector<std::string> data) {
  TestArray array{.format = format,
                  .name = name,
                  .length = std::ssize(values),
                  .offset = kGarbage,
                  .nulls = -1,
                  .buffers = std::move(data)};
  array.buffers.insert(array.buffers.begin(), ValidityOf(values));
  return array;
}

template <typename T>
TestArray Numbers(const std::string& format, const std::string& name,
                  const std::vector<std::optional<T>>& values) {
  std::string data(kGarbage * sizeof(T), '\x55');
  for (const std::optional<T>& value : values) data += BytesOf(value.value_or(T{99}));
  return ArrayOf(format, name, values, {data});
}

inline TestArray Bools(const std::string& name, const std::vector<std::optional<bool>>& values) {
  std::vector<std::optional<int>> set;
  for (const std::optional<bool>& value : values)
    set.push_back(value.value_or(false) ? std::optional(1) : std::nullopt);
  return ArrayOf("b", name, values, {ValidityOf(set)});
}

using Texts = std::vector<std::optional<std::string>>;

template <typename Offset>
TestArray TextsOf(const std::string& format, const std::string& name, const Texts& values) {
  std::string bytes = "garbage", offsets;
  for (size_t i = 0; i < kGarbage; ++i) offsets += BytesOf(Offset{0});
  offsets += BytesOf(static_cast<Offset>(bytes.size()));
  for (const std::optional<std::string>& value : values) {
    bytes += value.value_or("null");
    offsets += BytesOf(static_cast<Offset>(bytes.size()));
  }
  return ArrayOf(format, name, values, {offsets, bytes});
}

inline TestArray TextViews(const std::string& name, const Texts& values) {
  constexpr size_t kInlineBytes = 12;
  std::string bytes = "garbage", views(kGarbage * 16, '\x55');
  for (const std::optional<std::string>& value : values) {
    const std::string text = value.value_or("");
    views += BytesOf(static_cast<int32_t>(text.size()));
    if (text.size() <= kInlineBytes) {
      views += text + std::string(kInlineBytes - text.size(), '\0');
    } else {
      views +=
          text.substr(0, 4) + BytesOf(int32_t{0}) + BytesOf(static_cast<int32_t>(bytes.size()));
      bytes += text;
    }
  }
  return ArrayOf("vu", name, values, {views, bytes, BytesOf(static_cast<int64_t>(bytes.size()))});
}

// Lists of the items, divided by how many each has.
template <typename Offset>
TestArray Lists(const std::string& format, const std::string& name,
                const std::vector<std::optional<int>>& sizes, TestArray items) {
  std::string offsets;
  for (size_t i = 0; i <= kGarbage; ++i) offsets += BytesOf(Offset{0});
  Offset end = 0;
  for (const std::optional<int>& size : sizes) offsets += BytesOf(end += size.value_or(0));
  TestArray array = ArrayOf(format, name, sizes, {offsets});
  array.children.push_back(std::move(items));
  return array;
}

inline TestArray Encoded(const std::string& name, const std::vector<std::optional<int8_t>>& indices,
                         TestArray values) {
  TestArray array = Numbers<int8_t>("c", name, indices);
  array.dictionary = std::make_unique<TestArray>(std::move(values));
  return array;
}

inline void TestArray::Fill(ArrowSchema* schema) {
  *schema = {.format = format.c_str(), .name = name.c_str(), .n_children = std::ssize(children)};
  schemas_.resize(children.size());
  schema_pointers_.clear();
  for (size_t i = 0; i < children.size(); ++i) {
    children[i].Fill(&schemas_[i]);
    schema_pointers_.push_back(&schemas_[i]);
  }
  schema->children = schema_pointers_.data();
  if (dictionary) {
    dictionary->Fill(&dictionary_schema_);
    schema->dictionary = &dictionary_schema_;
  }
  if (break_schema) break_schema(schema);
}

inline void TestArray::Fill(ArrowArray* array) {
  *array = {.length = length,
            .null_count = nulls,
            .offset = offset,
            .n_buffers = std::ssize(buffers),
            .n_children = std::ssize(children)};
  pointers_.clear();
  for (const std::string& buffer : buffers)
    pointers_.push_back(buffer.empty() ? nullptr : buffer.data());
  array->buffers = pointers_.data();
  arrays_.resize(children.size());
  array_pointers_.clear();
  for (size_t i = 0; i < children.size(); ++i) {
    children[i].Fill(&arrays_[i]);
    array_pointers_.push_back(&arrays_[i]);
  }
  array->children = array_pointers_.data();
  if (dictionary) {
    dictionary->Fill(&dictionary_array_);
    array->dictionary = &dictionary_array_;
  }
  if (break_array) break_array(array);
}

// A stream of batches, each a list of columns. Counts what is released.
class TestStream {
 public:
  explicit TestStream(std::vector<std::vector<TestArray>> batches) {
    for (std::vector<TestArray>& columns : batches) {
      TestArray batch{.format = "+s",
                      .length = columns.empty() ? 0 : columns[0].length,
                      .buffers = {""},
                      .children = std::move(columns)};
      batches_.push_back(std::move(batch));
    }
    stream_.get_schema = [](ArrowArrayStream* stream, ArrowSchema* out) {
      Of(stream).batches_.at(0).Fill(out);
      out->private_data = stream;
      out->release = [](ArrowSchema* schema) {
        ++Of(static_cast<ArrowArrayStream*>(schema->private_data)).released_;
        schema->release = nullptr;
      };
      return 0;
    };
    stream_.get_next = [](ArrowArrayStream* stream, ArrowArray* out) {
      TestStream& self = Of(stream);
      *out = {};
      if (self.next_ == self.fails_at_) return EIO;
      if (self.next_ == self.batches_.size()) return 0;
      self.batches_[self.next_++].Fill(out);
      out->private_data = stream;
      out->release = [](ArrowArray* array) {
        ++Of(static_cast<ArrowArrayStream*>(array->private_data)).released_;
        array->release = nullptr;
      };
      return 0;
    };
    stream_.get_last_error = [](ArrowArrayStream*) { return "the disk is on fire"; };
    stream_.release = [](ArrowArrayStream* stream) {
      Of(stream).is_released_ = true;
      stream->release = nullptr;
    };
    stream_.private_data = this;
  }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  void FailAt(size_t batch) { fails_at_ = batch; }
  ArrowArrayStream* get() { return &stream_; }
  std::vector<TestArray>& columns() { return batches_.at(0).children; }
  TestArray& batch(size_t i) { return batches_.at(i); }
  // Schemas and arrays.
  int released() const { return released_; }
  bool is_released() const { return is_released_; }

 private:
  static TestStream& Of(ArrowArrayStream* stream) {
    return *static_cast<TestStream*>(stream->private_data);
  }

  ArrowArrayStream stream_ = {};
  std::vector<TestArray> batches_;
  size_t next_ = 0, fails_at_ = static_cast<size_t>(-1);
  int released_ = 0;
  bool is_released_ = false;
};

}  // namespace renzan::testing
