#include "renzan/data/text/text_output.h"

#include <zlib.h>
#include <zstd.h>

#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/staged.h"

namespace renzan {
namespace {

constexpr size_t kBlockBytes = 256 << 10;

// Speed matters more than size: generated data is read once or twice.
constexpr int kGzipLevel = 1;
constexpr int kZstdLevel = 1;

}  // namespace

struct TextOutput::Impl {
  enum class Kind { kPlain, kGzip, kZstd };

  Kind kind;
  StagedFile staged;
  FileWriter file;
  std::vector<char> block = std::vector<char>(kBlockBytes);
  z_stream gzip{};
  ZSTD_CStream* zstd = nullptr;

  explicit Impl(const std::string& path)
      : kind(path.ends_with(".gz")    ? Kind::kGzip
             : path.ends_with(".zst") ? Kind::kZstd
                                      : Kind::kPlain),
        staged(path),
        file(staged.staging()) {
    // 16: gzip. zlib's header holds no time and no name, so the bytes follow from the text alone.
    if (kind == Kind::kGzip)
      CHECK(deflateInit2(&gzip, kGzipLevel, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    if (kind == Kind::kZstd) {
      zstd = ZSTD_createCStream();
      CHECK(zstd != nullptr);
      ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, kZstdLevel);
      ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
    }
  }
  ~Impl() {
    if (kind == Kind::kGzip) deflateEnd(&gzip);
    ZSTD_freeCStream(zstd);
  }

  void Compress(std::string_view text, bool last) {
    if (kind == Kind::kPlain) {
      file.Write(text);
    } else if (kind == Kind::kGzip) {
      gzip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
      gzip.avail_in = static_cast<uInt>(text.size());
      do {
        gzip.next_out = reinterpret_cast<Bytef*>(block.data());
        gzip.avail_out = static_cast<uInt>(block.size());
        CHECK(deflate(&gzip, last ? Z_FINISH : Z_NO_FLUSH) != Z_STREAM_ERROR);
        file.Write(block.data(), block.size() - gzip.avail_out);
      } while (gzip.avail_out == 0);
    } else {
      ZSTD_inBuffer in{text.data(), text.size(), 0};
      for (size_t left = 1; left != 0;) {
        ZSTD_outBuffer out{block.data(), block.size(), 0};
        left = ZSTD_compressStream2(zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        CHECK(ZSTD_isError(left) == 0);
        file.Write(block.data(), out.pos);
        if (!last) left = in.size - in.pos;
      }
    }
  }
};

TextOutput::TextOutput(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}

TextOutput::~TextOutput() = default;

void TextOutput::Write(std::string_view text) {
  for (; text.size() > kBlockBytes; text.remove_prefix(kBlockBytes))
    impl_->Compress(text.substr(0, kBlockBytes), false);
  impl_->Compress(text, false);
}

void TextOutput::Close() {
  impl_->Compress({}, true);
  impl_->file.Close();
  impl_->staged.Commit();
}

}  // namespace renzan
