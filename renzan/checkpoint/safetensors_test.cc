#include "renzan/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/base/sha256.h"
#include "renzan/base/xxhash.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

std::vector<float> Values(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.5f);
  return values;
}

// Writes a file with this header, padded to 8 bytes but otherwise unchecked.
void WriteRaw(const std::string& path, std::string header, size_t data_bytes) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  std::string content(reinterpret_cast<const char*>(&length), sizeof(length));
  WriteFileAtomically(path, content + header + std::string(data_bytes, '\1'));
}

std::string ErrorOf(const std::string& path) {
  try {
    const SafetensorsReader reader(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_THAT(error.what(), HasSubstr(path));
    return error.what();
  }
  return "no error";
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  TemporaryDirectory dir;
  const std::vector<TensorInfo> tensors = {
      {"bottom.0.weight", {3, 4}}, {"empty", {0, 4}}, {"scalar", {}}, {"名前\"\\", {2}}};
  const std::vector<float> values = Values(15);
  SafetensorsWriter writer(dir / "x", tensors,
                           {.hash_tensors = true, .metadata = {{"step", "12"}}});
  // Pieces that do not align with the tensors.
  writer.Append(std::span(values).first(5));
  writer.Append(std::span(values).subspan(5));
  writer.Close();

  const SafetensorsReader reader(dir / "x");
  ASSERT_EQ(reader.tensors().size(), 4u);
  EXPECT_EQ(writer.bytes(), reader.bytes().size());
  Xxh128 hash;
  hash.Update(reader.bytes().data(), reader.bytes().size());
  EXPECT_EQ(writer.file_xxh128(), hash.HexDigest());
  EXPECT_EQ(reader.metadata().at("step"), "12");
  size_t offset = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SafetensorsReader::Tensor* tensor = reader.Find(tensors[i].key);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->info, tensors[i]);
    const std::span<const float> expected(values.data() + offset, tensor->f32().size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), tensor->f32().begin()));
    EXPECT_EQ(writer.tensor_sha256()[i],
              Sha256Hex({reinterpret_cast<const char*>(expected.data()), expected.size_bytes()}));
    offset += expected.size();
  }
  EXPECT_EQ(offset, values.size());
  EXPECT_EQ(reader.Find("other"), nullptr);
}

TEST(Safetensors, AlignsDataAndKeepsBits) {
  TemporaryDirectory dir;
  const std::vector<float> values = {-0.0f, std::numeric_limits<float>::quiet_NaN(),
                                     std::numeric_limits<float>::denorm_min(),
                                     -std::numeric_limits<float>::infinity()};
  for (const std::string key : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg"}) {
    SafetensorsWriter writer(dir / key, {{key, {4}}});
    writer.Append(values);
    writer.Close();
    const SafetensorsReader reader(dir / key);
    const auto read = reader.Find(key)->f32();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data()) % 8, 0u);
    EXPECT_EQ(std::memcmp(read.data(), values.data(), sizeof(float) * 4), 0);
  }
}

// Every type of element, each aligned, in a file without gaps.
TEST(Safetensors, HoldsFourTypes) {
  TemporaryDirectory dir;
  const std::vector<int64_t> counts = {int64_t{1} << 60, -1};
  const std::vector<int32_t> rows = {-7, 8, 9};
  const std::vector<uint8_t> q8 = {0, 255, 3};
  SafetensorsWriter writer(dir / "x", {{"counts", {2}, DType::kI64},
                                       {"rows", {3}, DType::kI32},
                                       {"weights", {2}},
                                       {"q8", {3, 1}, DType::kU8}});
  writer.Append(std::as_bytes(std::span(counts)));
  writer.Append(std::as_bytes(std::span(rows)));
  writer.Append(Values(2));
  writer.Append(std::as_bytes(std::span(q8)));
  writer.Close();
  EXPECT_EQ(writer.tensor_sha256(), std::vector<std::string>(4));
  const SafetensorsReader reader(dir / "x");
  EXPECT_THAT(reader.Find("counts")->i64(), testing::ElementsAreArray(counts));
  EXPECT_THAT(reader.Find("rows")->i32(), testing::ElementsAreArray(rows));
  EXPECT_THAT(reader.Find("weights")->f32(), testing::ElementsAreArray(Values(2)));
  EXPECT_THAT(reader.Find("q8")->u8(), testing::ElementsAreArray(q8));
}

TEST(Safetensors, RemovesAnUnfinishedFile) {
  TemporaryDirectory dir;
  {
    SafetensorsWriter writer(dir / "x", {{"a", {2}}});
    writer.Append(std::span<const float>(Values(1)));
  }
  EXPECT_FALSE(FileExists(dir / "x"));
}

TEST(Safetensors, RejectsInvalidHeaders) {
  TemporaryDirectory dir;
  const auto error = [&](const std::string& header, size_t bytes) {
    WriteRaw(dir / "x", header, bytes);
    return ErrorOf(dir / "x");
  };
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(error("{" + a + "}", 8), "no error");
  EXPECT_EQ(error("{}", 0), "no error");
  EXPECT_THAT(error("{" + a + "}", 7), HasSubstr("was it cut short?"));
  EXPECT_THAT(error("{" + a + "}", 9), HasSubstr("1 bytes beyond its last tensor"));
  EXPECT_THAT(error("{" + a + "," + a + "}", 8), HasSubstr("the key 'a' twice"));
  EXPECT_THAT(error("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(error("{" + a, 8), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("{\"a\":[[[[1]]]]}", 0), HasSubstr("nested too deeply"));
  EXPECT_THAT(error("{\"a\":" + std::string(100000, '['), 0), HasSubstr("nested too deeply"));
  EXPECT_THAT(error(R"({"a":{"dtype":"C64","shape":[4],"data_offsets":[0,8]}})", 8),
              HasSubstr("'a': dtype \"C64\""));
  EXPECT_THAT(error(R"({"a":{"dtype":"I64","shape":[2],"data_offsets":[0,8]}})", 8),
              HasSubstr("needs 16"));
  EXPECT_THAT(error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                    R"("b":{"dtype":"I32","shape":[1],"data_offsets":[2,6]}})",
                    6),
              HasSubstr("'b' does not begin at a multiple of 4"));
  EXPECT_THAT(error(R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})", 8),
              HasSubstr("lacks one of"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
              HasSubstr("has 8 bytes, but its shape [3] needs 12"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
              HasSubstr("not a whole number"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8),
              HasSubstr("not a whole number"));
  EXPECT_THAT(
      error(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8),
      HasSubstr("impossible shape"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[2]}})", 8), HasSubstr("lacks one of"));
  EXPECT_THAT(error("{" + a + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
              HasSubstr("'b' begins at 4 where 8 is expected"));
  EXPECT_THAT(error("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16),
              HasSubstr("a gap or an overlap"));
  EXPECT_THAT(error(R"({"__metadata__":{"step":3}})", 0), HasSubstr("not strings"));
  WriteFileAtomically(dir / "x", std::string(8, '\xff'));
  EXPECT_THAT(ErrorOf(dir / "x"), HasSubstr("does not fit the file's 8 bytes"));
}

class CorruptFile : public ::testing::Test {
 protected:
  CorruptFile() {
    SafetensorsWriter writer(dir_ / "x", {{"bottom.0.weight", {3, 2}}, {"bottom.0.bias", {3}}},
                             {.metadata = {{"step", "12"}}});
    writer.Append(Values(9));
    writer.Close();
    content_ = ReadFile(dir_ / "x");
  }

  // Reads every value of a file that is accepted.
  void Read(const std::string& content) {
    std::ofstream(dir_ / "y", std::ios::binary) << content;  // thousands, so without fsync
    try {
      const SafetensorsReader reader(dir_ / "y");
      for (const SafetensorsReader::Tensor& tensor : reader.tensors())
        for (const std::byte value : tensor.bytes) sum_ += static_cast<double>(value);
      ++accepted_;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      ++rejected_;
    }
  }

  TemporaryDirectory dir_;
  std::string content_;
  double sum_ = 0;
  size_t accepted_ = 0, rejected_ = 0;
};

TEST_F(CorruptFile, IsRejectedWhenTruncatedAnywhere) {
  for (size_t size = 0; size < content_.size(); ++size) Read(content_.substr(0, size));
  EXPECT_EQ(accepted_, 0u);
  EXPECT_EQ(rejected_, content_.size());
}

TEST_F(CorruptFile, FlippedBitsNeverReadBeyondTheFile) {
  const size_t header_end = content_.size() - 9 * sizeof(float);
  for (uint64_t i = 0; i < 3000; ++i) {
    std::string corrupt = content_;
    const Philox::Block block = Philox::Draw(17, i);
    for (uint32_t flip = 0; flip <= block[3] % 3; ++flip)
      corrupt[block[flip] % header_end] ^= static_cast<char>(1 << (block[flip] >> 29));
    Read(corrupt);
  }
  // A flip inside a key leaves a valid file with another key.
  EXPECT_GT(accepted_, 0u);
  EXPECT_GT(rejected_, 2000u);
}

}  // namespace
}  // namespace renzan
