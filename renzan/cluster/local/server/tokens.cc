#include "renzan/cluster/local/server/tokens.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/base/sha256.h"
#include "renzan/cluster/local/server/api_socket.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

using TokensJson = nlohmann::ordered_json;

constexpr size_t kTokenBytes = 32;
constexpr int64_t kHourMs = 3'600'000;
// So long, its bearer learns that a token has expired, not that it is unknown.
constexpr int64_t kKeepExpiredMs = 30 * 24 * kHourMs;

std::string RandomToken() {
  unsigned char random[kTokenBytes];
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
    FailErrno(errno, "cannot generate a token");
  std::string token;
  for (const unsigned char byte : random) token += fmt::format("{:02x}", byte);
  return token;
}

// One that others can write could hold tokens of theirs.
void CheckIsOurs(const std::string& path) {
  struct stat about;
  if (::stat(path.c_str(), &about) != 0) FailErrno(errno, "cannot stat " + path);
  if (about.st_uid != ::geteuid() || (about.st_mode & 077) != 0)
    Fail(ErrorCode::kNoPermission,
         "{} is not only for the daemon's user: remove it, which revokes all tokens, and make new "
         "ones",
         path);
}

std::optional<Caller> BearerNamed(const std::string& user) {
  const std::optional<JobUser> found = FindUser(user);
  if (!found) return std::nullopt;
  return Caller{.uid = found->uid, .gid = found->gid, .name = found->name, .by_token = true};
}

}  // namespace

Tokens::Tokens(std::string path, std::vector<std::string> allow_users, const Clock& clock)
    : path_(std::move(path)), allow_users_(std::move(allow_users)), clock_(clock) {
  if (IsMissing(path_)) return;
  CheckIsOurs(path_);
  try {
    const TokensJson all = TokensJson::parse(ReadFile(path_));
    next_ = all.at("next_id");
    for (const TokensJson& each : all.at("tokens"))
      records_.push_back({.id = each.at("id"),
                          .user = each.at("user"),
                          .uid = each.at("uid"),
                          .sha256 = each.at("sha256"),
                          .created = each.at("created"),
                          .expires = each.at("expires"),
                          .last_used = each.at("last_used")});
  } catch (const TokensJson::exception& error) {
    Fail(ErrorCode::kData,
         "{} does not hold tokens ({}): remove it, which revokes all of them, and make new ones",
         path_, error.what());
  }
}

void Tokens::Save(const std::vector<TokenRecord>& records, int64_t next) const {
  TokensJson all = {{"next_id", next}, {"tokens", TokensJson::array()}};
  for (const TokenRecord& each : records)
    all["tokens"].push_back({{"id", each.id},
                             {"user", each.user},
                             {"uid", each.uid},
                             {"sha256", each.sha256},
                             {"created", each.created},
                             {"expires", each.expires},
                             {"last_used", each.last_used}});
  WriteFileAtomically(path_, all.dump(2) + "\n", 0600);
}

std::string Tokens::WhyNot(const std::string& user, const std::optional<Caller>& caller) const {
  if (!caller) return "there is no such user on the daemon's machine";
  if (caller->uid == 0) return "nobody is root over TCP: name the user whose jobs it is for";
  if (IsAllowed(*caller, allow_users_)) return "";
  if (::geteuid() != 0)
    return fmt::format(
        "this daemon runs jobs only as {}, its own user: name that one, or start the daemon as "
        "root with --allow-user {}",
        UserName(::geteuid()), user);
  return fmt::format("the daemon does not serve '{}': start it with --allow-user {}", user, user);
}

Tokens::Made Tokens::Create(const std::string& user, int64_t seconds) {
  const std::optional<Caller> caller = BearerNamed(user);
  if (const std::string why = WhyNot(user, caller); !why.empty())
    Fail(ErrorCode::kUsage, "--user {}: {}", user, why);
  Made made{.record = {}, .token = RandomToken()};
  const int64_t now = clock_.UnixMs();
  const std::lock_guard lock(mutex_);
  made.record = {.id = next_,
                 .user = caller->name,
                 .uid = caller->uid,
                 .sha256 = Sha256Hex(made.token),
                 .created = now,
                 .expires = now + seconds * 1000};
  std::vector<TokenRecord> records = records_;
  std::erase_if(records,
                [&](const TokenRecord& each) { return each.expires + kKeepExpiredMs < now; });
  records.push_back(made.record);
  Save(records, next_ + 1);
  records_ = std::move(records);
  ++next_;
  return made;
}

std::vector<TokenRecord> Tokens::List() {
  const std::lock_guard lock(mutex_);
  return records_;
}

TokenRecord Tokens::Revoke(int64_t id) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(records_.begin(), records_.end(),
                               [&](const TokenRecord& each) { return each.id == id; });
  if (at == records_.end())
    Fail(ErrorCode::kNoInput, "there is no token {}: `renzan cluster token list` shows them", id);
  TokenRecord revoked = *at;
  std::vector<TokenRecord> records = records_;
  records.erase(records.begin() + (at - records_.begin()));
  Save(records, next_);
  records_ = std::move(records);
  return revoked;
}

// A failure to save it must not keep the user from working.
void Tokens::NoteUse(TokenRecord& record) {
  const int64_t now = clock_.UnixMs();
  if (now - record.last_used < kHourMs) return;
  record.last_used = now;
  try {
    Save(records_, next_);
  } catch (const Error& error) {
    LogWarning("cannot save when token {} was used: {}", record.id, error.what());
  }
}

TokenRecord Tokens::Find(const std::string& token) {
  if (token.empty())
    Fail(ErrorCode::kNoPermission,
         "over TCP this daemon needs a token: ask its operator for one (`renzan cluster token "
         "create`), and set RENZAN_TOKEN_FILE to its file");
  const std::string sha256 = Sha256Hex(token);
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(records_.begin(), records_.end(),
                               [&](const TokenRecord& each) { return each.sha256 == sha256; });
  if (at == records_.end())
    Fail(ErrorCode::kNoPermission,
         "this token is unknown, or has been revoked: ask the daemon's operator for a new one "
         "(`renzan cluster token create`)");
  if (clock_.UnixMs() >= at->expires)
    Fail(ErrorCode::kNoPermission,
         "this token of {} expired at {} (local time of the daemon): ask the daemon's operator for "
         "a new one (`renzan cluster token create --user {}`)",
         at->user, FormatLocal(static_cast<double>(at->expires) / 1000), at->user);
  NoteUse(*at);
  return *at;
}

Caller Tokens::CallerOf(const std::string& token) {
  const TokenRecord record = Find(token);
  const std::optional<Caller> caller = BearerNamed(record.user);
  if (caller && caller->uid != record.uid)
    Fail(ErrorCode::kNoPermission,
         "this token was made for another account named '{}' (user id {}): ask the daemon's "
         "operator for a new one",
         record.user, record.uid);
  if (const std::string why = WhyNot(record.user, caller); !why.empty())
    Fail(ErrorCode::kNoPermission, "this token of {} is of no use: {}", record.user, why);
  return *caller;
}

}  // namespace renzan::cluster::local
