#include "renzan/storage/upload_files.h"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/storage/in_parallel.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

// Each may have several requests in flight and takes kOutputFileBytes.
constexpr size_t kFilesAtOnce = 4;

struct Copy {
  std::string from, to;
};

// Without '/' at either end.
std::string Trimmed(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  while (name.starts_with('/')) name.remove_prefix(1);
  return std::string(name);
}

[[noreturn]] void FailToList(const std::string& path, const std::error_code& error) {
  FailToRead(error.value(), path);
}

class Plan {
 public:
  void Add(const std::string& from, const std::string& to) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(from, error);
    if (status.type() == fs::file_type::not_found)
      Fail(ErrorCode::kNoInput, "{} does not exist", from);
    if (error) FailToList(from, error);
    if (status.type() == fs::file_type::directory) {
      fs::directory_iterator at(from, error);
      for (; !error && at != fs::directory_iterator(); at.increment(error))
        Add(at->path().string(), to + "/" + at->path().filename().string());
      if (error) FailToList(from, error);
    } else if (status.type() == fs::file_type::regular) {
      copies_.push_back({from, to});
    } else {
      ++left_out_;
    }
  }

  const std::vector<Copy>& copies() const { return copies_; }
  uint64_t left_out() const { return left_out_; }

 private:
  std::vector<Copy> copies_;
  uint64_t left_out_ = 0;
};

}  // namespace

UploadSource UploadSourceOf(const std::string& path) {
  if (const size_t mark = path.find("/./"); mark != std::string::npos)
    return {path, Trimmed(std::string_view(path).substr(mark + 3))};
  const std::string whole = Trimmed(fs::absolute(path).lexically_normal().string());
  return {path, fs::path(whole).filename().string()};
}

Uploaded UploadFiles(std::span<const UploadSource> sources, const std::string& to,
                     const std::function<bool()>& stop) {
  const std::string root = NormalizedPath(to);
  Plan plan;
  for (const UploadSource& source : sources)
    plan.Add(source.path, source.name.empty() ? root : root + "/" + source.name);
  std::atomic<uint64_t> bytes{0};
  const auto copy = [&](size_t i) {
    const Copy& one = plan.copies()[i];
    const std::unique_ptr<OutputFile> out = Storage::Of(one.to).Create(one.to);
    ReadInPieces(one.from, [&](std::span<const char> piece) {
      if (stop()) Fail(ErrorCode::kTempFail, "copying {} to {} was stopped", one.from, one.to);
      out->Write(piece.data(), piece.size());
    });
    out->Close();
    bytes += out->bytes_written();
  };
  InParallel(plan.copies().size(), copy, kFilesAtOnce);
  return {.files = plan.copies().size(), .bytes = bytes, .left_out = plan.left_out()};
}

}  // namespace renzan
