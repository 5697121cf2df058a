#include "renzan/cluster/record/recording.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/record/cycle_json.h"
#include "renzan/cluster/spec/described_json.h"

namespace renzan::cluster::record {
namespace {

constexpr const char* kFormat = "renzan-cycles";
// The limit for one cycle: several hundred times what the largest clusters need.
constexpr unsigned long long kMostFrameBytes = 1ULL << 32;
// Frames in a row compress at several hundred megabytes a second.
constexpr int kLevel = 3;

struct HeaderLine {
  std::string format = kFormat;
  int version = kRecordingVersion;
  RecordingHeader header;
};

template <typename Io>
void Describe(Io& io, HeaderLine& line) {
  io("format", line.format);
  io("version", line.version);
  io("program", line.header.program);
  io("writer", line.header.writer);
  int64_t cycles = static_cast<int64_t>(line.header.cycles);
  io("cycles", cycles);
  line.header.cycles = static_cast<size_t>(cycles);
}

[[noreturn]] void FailNotOne(const std::string& path) {
  Fail(ErrorCode::kData, "{} is not a recording of scheduling cycles", path);
}

// Checks only whether the rest can be read.
void CheckVersion(const std::string& text, const std::string& path) {
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("format") || line["format"] != kFormat ||
      !line.contains("version") || !line["version"].is_number_integer())
    FailNotOne(path);
  if (line["version"] != kRecordingVersion)
    Fail(ErrorCode::kData,
         "{} has version {} of the format, and this program reads version {}: replay it with the "
         "program that recorded it, {}",
         path, line["version"].dump(), kRecordingVersion,
         line.contains("program") ? line["program"].dump() : "a later version");
}

// Takes frames off the front of a file.
class Frames {
 public:
  explicit Frames(const std::string& path)
      : path_(path), content_(ReadFile(path)), rest_(content_) {}

  bool empty() const { return rest_.empty(); }

  // `what`: a description of the frame, for errors.
  std::string Next(const std::string& what) {
    constexpr std::string_view kMagic = "\x28\xb5\x2f\xfd";
    if (rest_.substr(0, kMagic.size()) != kMagic.substr(0, rest_.size())) FailDamaged(what);
    const size_t bytes = ::ZSTD_findFrameCompressedSize(rest_.data(), rest_.size());
    if (::ZSTD_isError(bytes) != 0 && ::ZSTD_getErrorCode(bytes) == ZSTD_error_srcSize_wrong)
      FailTruncated(what);
    if (::ZSTD_isError(bytes) != 0) FailDamaged(what);
    const unsigned long long size = ::ZSTD_getFrameContentSize(rest_.data(), bytes);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
        size > kMostFrameBytes)
      FailDamaged(what);
    std::string text(size, '\0');
    const size_t got = ::ZSTD_decompress(text.data(), text.size(), rest_.data(), bytes);
    if (::ZSTD_isError(got) != 0 || got != size) FailDamaged(what);
    rest_.remove_prefix(bytes);
    return text;
  }

  bool starts_with_a_frame() const { return rest_.starts_with("\x28\xb5\x2f\xfd"); }

  [[noreturn]] void FailTruncated(const std::string& what) const {
    Fail(ErrorCode::kData, "{} is truncated: it ends in {}; fetch or copy it again", path_, what);
  }
  [[noreturn]] void FailDamaged(const std::string& what) const {
    Fail(ErrorCode::kData, "{} is damaged in {}; fetch or copy it again", path_, what);
  }

 private:
  const std::string path_;
  const std::string content_;
  std::string_view rest_;
};

}  // namespace

std::string Compressed(std::string_view text) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&::ZSTD_freeCCtx)> context(::ZSTD_createCCtx(),
                                                                       ::ZSTD_freeCCtx);
  CHECK(context != nullptr);
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string frame(::ZSTD_compressBound(text.size()), '\0');
  const size_t bytes =
      ::ZSTD_compress2(context.get(), frame.data(), frame.size(), text.data(), text.size());
  CHECK(::ZSTD_isError(bytes) == 0);
  frame.resize(bytes);
  frame.shrink_to_fit();
  return frame;
}

std::string RecordingOf(const RecordingHeader& header, const std::vector<std::string>& frames) {
  HeaderLine line;
  line.header = header;
  line.header.cycles = frames.size();
  std::string recording = Compressed(spec::JsonWriter::Text(line) + "\n");
  size_t bytes = recording.size();
  for (const std::string& frame : frames) bytes += frame.size();
  recording.reserve(bytes);
  for (const std::string& frame : frames) recording += frame;
  return recording;
}

void ReadRecording(const std::string& path,
                   const std::function<void(const RecordingHeader&, Cycle)>& take) {
  Frames frames(path);
  if (!frames.starts_with_a_frame()) FailNotOne(path);
  const std::string first = frames.Next("its header");
  CheckVersion(first, path);
  const auto read = [&](const std::string& what, const auto& parse) {
    try {
      return parse();
    } catch (const Error& error) {
      throw error.WithContext(fmt::format("{}: {}", path, what));
    }
  };
  const RecordingHeader header = read(
      "its header", [&] { return spec::JsonReader::Parse<HeaderLine>(first, "header").header; });
  for (size_t at = 1; at <= header.cycles; ++at) {
    const std::string what = fmt::format("recorded cycle {} of {}", at, header.cycles);
    const std::string text = frames.Next(what);
    take(header, read(what, [&] { return CycleFromJson(text); }));
  }
  if (!frames.empty())
    Fail(ErrorCode::kData, "{} has more after its {}; fetch or copy it again", path,
         Counted(header.cycles, "cycle"));
}

}  // namespace renzan::cluster::record
