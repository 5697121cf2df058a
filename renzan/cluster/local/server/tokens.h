#pragma once

// The tokens by which the daemon knows its users over TCP. Thread-safe.
//
// A token's bearer is that user, without an operator's rights. Only its SHA-256 is stored: a token
// has 256 random bits, so nothing can be guessed from it.

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/local/controller/access.h"

namespace renzan::cluster::local {

inline constexpr int64_t kMaxTokenSeconds = 366 * 24 * 3600;

struct TokenRecord {
  int64_t id = 0;
  std::string user;
  uid_t uid =
      0;  // of the user when it was made: an account may be removed, and its name given away
  std::string sha256;
  int64_t created = 0, expires = 0;  // in ms since 1970
  int64_t last_used = 0;             // written once an hour; 0: never
};

class Tokens {
 public:
  // Those in the file `path`; none if it is missing. `allow_users`: as of IsAllowed(). Throws Error
  // kData for an invalid file, kNoPermission for one that others may have written.
  Tokens(std::string path, std::vector<std::string> allow_users, const Clock& clock);

  struct Made {
    TokenRecord record;
    std::string token;
  };
  // Throws Error kUsage if the daemon cannot serve that user over TCP, kIo if it cannot be saved.
  Made Create(const std::string& user, int64_t seconds);
  // Also those that have expired in the last 30 days, oldest first.
  std::vector<TokenRecord> List();
  // From the next request on. Throws Error kNoInput if there is no such token, kIo if this cannot
  // be saved: then it is still valid.
  TokenRecord Revoke(int64_t id);

  // Who bears the token. Throws Error kNoPermission, or kOsError if the user cannot be looked up.
  Caller CallerOf(const std::string& token);

 private:
  void Save(const std::vector<TokenRecord>& records, int64_t next) const;
  // Why the daemon does not serve the user over TCP; "": it does.
  std::string WhyNot(const std::string& user, const std::optional<Caller>& caller) const;
  TokenRecord Find(const std::string& token);
  void NoteUse(TokenRecord& record);

  const std::string path_;
  const std::vector<std::string> allow_users_;
  const Clock& clock_;
  std::mutex mutex_;  // guards the members below, and the file
  std::vector<TokenRecord> records_;
  int64_t next_ = 1;
};

}  // namespace renzan::cluster::local
