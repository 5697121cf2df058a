#include "renzan/storage/copy_file.h"

#include <memory>

#include "renzan/base/error.h"
#include "renzan/storage/storage.h"

namespace renzan {

void CopyFile(const std::string& from, const std::string& to, const std::atomic<bool>* cancel) {
  const std::unique_ptr<OutputFile> out = Storage::Of(to).Create(to);
  ReadInPieces(from, [&](std::span<const char> piece) {
    if (cancel != nullptr && *cancel)
      Fail(ErrorCode::kTempFail, "copying {} to {} was cancelled", from, to);
    out->Write(piece.data(), piece.size());
  });
  out->Close();
}

}  // namespace renzan
