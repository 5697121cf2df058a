#include "renzan/cluster/kubernetes/api/token.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr double kReadAgainSeconds = 60;

}  // namespace

const std::string& Token::Get() {
  if (access_.token_file.empty()) return access_.token;
  if (token_.empty() || clock_.MonotonicSeconds() >= read_seconds_ + kReadAgainSeconds) Read();
  return token_.empty() ? access_.token : token_;
}

bool Token::Renew() {
  if (access_.token_file.empty()) return false;
  const std::string refused = Get();
  Read();
  return Get() != refused;
}

void Token::Read() {
  read_seconds_ = clock_.MonotonicSeconds();
  const bool required = token_.empty() && access_.token.empty();
  std::string token;
  try {
    token = ReadFile(access_.token_file);
  } catch (const Error& error) {
    if (!required) return;
    Fail(ErrorCode::kNoPermission,
         "cannot read the token that {} names: {}: make the file readable, or use other "
         "credentials",
         access_.from, error.what());
  }
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  // Anything else could add header lines to a request.
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!token.empty() && printable) {
    token_ = std::move(token);
  } else if (required) {
    Fail(ErrorCode::kNoPermission,
         "{} does not contain a token: check what writes it, or use other "
         "credentials than those of {}",
         access_.token_file, access_.from);
  }
}

}  // namespace renzan::cluster::kubernetes
