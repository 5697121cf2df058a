#include <algorithm>
#include <mutex>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/api/credentials.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr double kReadAgainSeconds = 60;
constexpr double kRetrySeconds = 5;

class TokenFile : public Credentials {
 public:
  TokenFile(std::string path, std::string instead, std::string from, const Clock& clock)
      : path_(std::move(path)), from_(std::move(from)), clock_(clock) {
    if (!instead.empty()) current_ = std::make_shared<Credential>(Credential{.token = instead});
  }

  std::shared_ptr<const Credential> Get(const std::stop_token&) override {
    const std::lock_guard lock(mutex_);
    if (!current_ || clock_.MonotonicSeconds() >= read_again_seconds_) Read();
    return current_;
  }

  bool Renew(const std::shared_ptr<const Credential>& refused, const std::stop_token&) override {
    const std::lock_guard lock(mutex_);
    // Otherwise another connection, or the minute, has renewed it meanwhile.
    if (*current_ == *refused) Read();
    return *current_ != *refused;
  }

 private:
  // Sets current_, or throws if there is none.
  void Read() {
    try {
      std::string token = ReadFile(path_);
      while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
      if (!IsToken(token))
        Fail(ErrorCode::kNoPermission,
             "{} does not contain a token: check what writes it, or use other credentials than "
             "those of {}",
             path_, from_);
      if (!current_ || current_->token != token)
        current_ = std::make_shared<Credential>(Credential{.token = std::move(token)});
      read_again_seconds_ = clock_.MonotonicSeconds() + kReadAgainSeconds;
      warned_ = false;
    } catch (const Error& error) {
      KeepLast(error);
    }
  }

  void KeepLast(const Error& error) {
    const std::string message =
        fmt::format("cannot read the token that {} names: {}", from_, error.what());
    if (!current_)
      throw ApiError(ErrorCode::kNoPermission, 0, "NoCredentials",
                     message + ": make the file readable, or use other credentials",
                     /*maybe_executed=*/false);
    read_again_seconds_ = clock_.MonotonicSeconds() + kRetrySeconds;
    if (!std::exchange(warned_, true))
      LogWarning("{}: the last one stays in use; the file is read again every {} s", message,
                 kRetrySeconds);
  }

  const std::string path_, from_;
  const Clock& clock_;
  std::mutex mutex_;
  std::shared_ptr<const Credential> current_;
  double read_again_seconds_ = -1e300;
  bool warned_ = false;  // since it could last be read
};

}  // namespace

std::shared_ptr<Credentials> MakeTokenFile(std::string path, std::string instead, std::string from,
                                           const Clock& clock) {
  return std::make_shared<TokenFile>(std::move(path), std::move(instead), std::move(from), clock);
}

bool IsToken(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace renzan::cluster::kubernetes
