#include "renzan/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "renzan/base/sha256.h"
#include "renzan/checkpoint/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

CheckpointManifest Example() {
  CheckpointManifest manifest{.kind = CheckpointKind::kIncremental, .step = 20, .unix_ms = 17};
  manifest.base = {"step-00000010", std::string(64, 'a')};
  manifest.quantization = "int8";
  manifest.run = {{"isa", "avx2"}, {"dataset data/ü", "01\x1f\"\\"}};
  manifest.files = {{"x.safetensors", 100, std::string(32, '1'), {}},
                    {"y.safetensors", 200, std::string(32, '2'), {}}};
  manifest.files[0].tensors = {{{"a", {3, 2}, DType::kI64}, std::string(64, '3')},
                               {{"b", {}, DType::kF32}, ""}};
  manifest.config = "seed: 1\n# Ω\x7f\n";
  return manifest;
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  const CheckpointManifest written = Example();
  const CheckpointManifest read = CheckpointManifest::Parse(written.ToJson());
  EXPECT_EQ(read.kind, written.kind);
  EXPECT_EQ(read.step, written.step);
  EXPECT_EQ(read.unix_ms, written.unix_ms);
  EXPECT_EQ(read.base, written.base);
  EXPECT_EQ(read.quantization, written.quantization);
  EXPECT_EQ(read.model_sha256, "");
  EXPECT_EQ(read.run, written.run);
  EXPECT_EQ(read.files, written.files);
  EXPECT_EQ(read.config, written.config);
  EXPECT_EQ(read.bytes(), 300u);
  EXPECT_EQ(read.manifest_sha256.size(), 64u);
  EXPECT_EQ(read.ToJson(), written.ToJson());
  EXPECT_EQ(CheckpointFile::FromJson(written.files[0].ToJson()), written.files[0]);
}

// Checks what docs/formats/checkpoint.md says about manifest_sha256 with another JSON library.
TEST(Manifest, ItsChecksumIsOverCompactJson) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "manifest.json", Example().ToJson());
  const std::string command = fmt::format(
      "PYTHONUTF8=1 python3 -c 'import hashlib, json, sys\n"
      "m = json.load(open(sys.argv[1]))\n"
      "recorded = m.pop(\"manifest_sha256\")\n"
      "text = json.dumps(m, separators=(\",\", \":\"), ensure_ascii=False)\n"
      "sys.exit(hashlib.sha256(text.encode()).hexdigest() != recorded)' {}",
      dir / "manifest.json");
  if (std::system("python3 -c ''") != 0) GTEST_SKIP() << "needs python3";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Manifest, ModelSha256FollowsTheFormat) {
  CheckpointFile file{.name = "x"};
  file.tensors = {{{"b", {}, DType::kF32}, "22"},
                  {{"a", {3, 2}, DType::kF32}, "11"},
                  {{"progress.auc", {9}, DType::kI64}, ""}};
  const auto sum = [&] { return ModelSha256(std::span(&file, 1), 5); };
  EXPECT_EQ(sum(), Sha256Hex("step 5\na [3, 2] 11\nb [] 22\n"));
  file.tensors[0].sha256 = "";
  EXPECT_EQ(sum(), "");
}

// The error for the example after a change, with a matching manifest_sha256.
std::string ErrorAfter(const std::function<void(Json&)>& change) {
  Json json = Json::parse(Example().ToJson());
  json.erase("manifest_sha256");
  change(json);
  json["manifest_sha256"] = Sha256Hex(json.dump());
  return DataErrorOf([&] { CheckpointManifest::Parse(json.dump()); });
}

TEST(Manifest, RejectsInvalidContent) {
  EXPECT_EQ(ErrorAfter([](Json& json) { json["unknown"] = "key"; }), "no error");
  struct Case {
    const char *pointer, *value, *message;
  };
  const Case cases[] = {
      {"/format", R"("renzan-run")", "its format is \"renzan-run\""},
      {"/version", "4", "use a newer program"},
      {"/version", "2", "its version is 2, but none of its files has initial rows"},
      {"/kind", R"("half")", "neither full nor incremental"},
      {"/kind", R"("full")", "it is full and names a base"},
      {"/base", "null", "it is incremental and lacks a base"},
      {"/base/name", R"("../step-00000010")", "is not a valid name"},
      {"/base/name", R"("")", "is not a valid name"},
      {"/base/manifest_sha256", R"("aa")", "not 64 hexadecimal digits"},
      {"/quantization", R"("int4")", "its quantization is \"int4\""},
      {"/step", "-1", "not a whole number"},
      {"/step", "18446744073709551615", "not a whole number"},
      {"/step", "\"20\"", "not a whole number"},
      {"/unix_ms", "null", "not a whole number"},
      {"/run", "[1]", "a key is missing or has the wrong type"},
      {"/run/isa", "3", "its 'isa' is 3, not a string"},
      {"/files", "7", "a key is missing or has the wrong type"},
      {"/files/0/name", R"("a/b")", "is not a valid name"},
      {"/files/0/name", R"("..")", "is not a valid name"},
      {"/files/0/name", R"("a\u0000b")", "is not a valid name"},
      {"/files/0/name", R"("manifest.json")", "is not a valid name"},
      {"/files/0/name", R"("y.safetensors")", "file y.safetensors is listed twice"},
      {"/files/0/bytes", "4611686018427387905", "not a whole number"},
      {"/files/0/bytes", "51", "need more than its 51 bytes"},
      {"/files/0/xxh128", R"("1")", "not 32 hexadecimal digits"},
      {"/files/0/tensors/1/key", R"("a")", "tensor 'a' is listed twice"},
      {"/files/0/tensors/0/dtype", R"("C64")", "none of F64"},
      {"/files/0/tensors/0/shape", "[4294967296, 4294967296]", "impossible shape"},
      {"/files/0/tensors/0/shape", "[4294967296, 4294967296, 0]", "impossible shape"},
      {"/files/0/tensors/0/shape", "[-3]", "not a whole number"},
      {"/files/0/tensors/0/sha256", R"("3")", "not 64 hexadecimal digits"},
      {"/model_sha256", R"("bb")", "not 64 hexadecimal digits"},
      {"/config_sha256", "null", "not a string"},
      {"/config", R"("seed: 2\n")", "its configuration does not have the SHA-256"},
  };
  for (const Case& c : cases)
    EXPECT_THAT(
        ErrorAfter([&](Json& json) { json[Json::json_pointer(c.pointer)] = Json::parse(c.value); }),
        HasSubstr(c.message))
        << c.pointer << " " << c.value;
  for (const char* key :
       {"format", "kind", "step", "base", "run", "files", "config", "model_sha256"})
    EXPECT_THAT(ErrorAfter([&](Json& json) { json.erase(key); }), HasSubstr(key));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["model_sha256"] = std::string(64, 'b'); }),
              HasSubstr("it records bbbb"));
}

TEST(Manifest, RejectsTextThatTheParserWouldAccept) {
  const std::string text = Example().ToJson();
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return DataErrorOf([&] { CheckpointManifest::Parse(changed.replace(at, from.size(), to)); });
  };
  EXPECT_THAT(error("\"step\": 20", "\"step\": 20, \"step\": 20"), HasSubstr("'step' twice"));
  EXPECT_THAT(error("\"step\": 20", "\"step\": 20.0"), HasSubstr("20.0, not a whole number"));
  EXPECT_THAT(error("\"step\": 20", "\"step\": 1e999"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("\"step\": 20", "\"step\": 21"), HasSubstr("it is corrupt"));
  EXPECT_THAT(error("avx2", "avx\xff"), HasSubstr("not valid JSON"));
  EXPECT_THAT(DataErrorOf([] { CheckpointManifest::Parse(std::string(100000, '[')); }),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(DataErrorOf([] { CheckpointManifest::Parse("[]"); }),
              HasSubstr("a key is missing or has the wrong type"));
}

TEST(Manifest, DoesNotWriteWhatCannotBeRead) {
  CheckpointManifest manifest = Example();
  manifest.config = "path: \xff\n";
  EXPECT_THAT(DataErrorOf([&] { manifest.ToJson(); }), HasSubstr("cannot be written"));
  TemporaryDirectory dir;
  CheckpointWriter writer(dir / "m");
  const TestModel model;
  const auto tensors = model.Dense();
  CheckpointManifest twice;
  twice.files = {WriteCheckpointFile(writer.location(), "a", tensors, {}),
                 WriteCheckpointFile(writer.location(), "b", tensors, {})};
  EXPECT_THAT(DataErrorOf([&] { writer.Commit(twice); }), HasSubstr("'bottom.0.weight' is"));
  EXPECT_FALSE(FileExists(dir / "m"));
}

}  // namespace
}  // namespace renzan
