// renzan cluster token create|list|revoke

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "renzan/base/clock.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/text/table.h"
#include "renzan/cluster/client/client.h"
#include "renzan/cluster/client/credential.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

struct TokenFlags {
  ClusterFlags cluster;
  std::string user, expires = "30d", address, output;
  int64_t id = 0;
  bool json = false;
};

client::Client DaemonFor(const TokenFlags& flags, const std::string& verb) {
  RequireThisMachine(flags.cluster, "cluster token " + verb);
  return client::Client(EndpointOf(flags.cluster.socket));
}

// A new file for its owner only. It is removed again unless it was written, so that no token is
// made that nobody can be given.
class PrivateFile {
 public:
  explicit PrivateFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (fd_ < 0) FailErrno(errno, "cannot create " + path);
  }
  ~PrivateFile() {
    ::close(fd_);
    if (!written_) ::unlink(path_.c_str());
  }
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  void Write(const std::string& text) {
    errno = 0;
    const ssize_t size = ::write(fd_, text.data(), text.size());
    written_ = size == static_cast<ssize_t>(text.size()) && ::fsync(fd_) == 0;
    if (!written_) FailErrno(errno == 0 ? ENOSPC : errno, "cannot write " + path_);
  }

 private:
  const std::string path_;
  const int fd_;
  bool written_ = false;
};

// "https://HOST:PORT" of what the operator calls the daemon.
std::string AddressIn(const std::string& given) {
  const std::string address = client::IsUrl(given) ? given : "https://" + given;
  const size_t host = address.find("://") + 3, colon = address.rfind(':');
  if (!client::IsTcpAddress(address) || colon <= host || colon + 1 == address.size() ||
      address.find_first_not_of("0123456789", colon + 1) != std::string::npos ||
      address.find_first_of("/?#@ ", host) != std::string::npos)
    Fail(ErrorCode::kUsage, "--address {}: expected HOST:PORT, as in gpu.example.org:7070", given);
  return address;
}

void Create(const TokenFlags& flags) {
  const std::optional<double> seconds = ParseDuration(flags.expires);
  if (!seconds || *seconds < 1 || *seconds > 366 * 24 * 3600.0)
    Fail(ErrorCode::kUsage, "--expires {}: must be a duration such as 12h or 30d, at most 366d",
         flags.expires);
  const std::string address = flags.address.empty() ? "" : AddressIn(flags.address);
  client::Client daemon = DaemonFor(flags, "create");
  std::optional<PrivateFile> file;
  if (!flags.output.empty()) file.emplace(flags.output);
  const Json request = {{"user", flags.user}, {"for_seconds", static_cast<int64_t>(*seconds)}};
  const Json made = Json::parse(daemon.Post("/v1/tokens", request.dump()));
  const auto expires_ms = made.at("expires").get<int64_t>();
  const std::string text = client::CredentialText(
      {.address = address.empty() ? made.at("address").get<std::string>() : address,
       .pin = made.at("pin"),
       .user = made.at("user"),
       .expires = FormatUtc(static_cast<double>(expires_ms) / 1000),
       .token = made.at("token")});
  if (file)
    file->Write(text);
  else
    fmt::print("{}", text);
  if (made.at("owns_daemon"))
    LogWarning(
        "jobs of this token run as {}, the daemon's own user: whoever has it can do all that {} "
        "can on this machine. A daemon of root (--allow-user) runs every user's jobs as that user",
        made.at("user").get<std::string>(), made.at("user").get<std::string>());
  LogInfo("token {} of {} is valid until {}; `renzan cluster token revoke {}` ends it before that",
          made.at("id").dump(), made.at("user").get<std::string>(),
          FormatLocal(static_cast<double>(expires_ms) / 1000), made.at("id").dump());
}

void List(const TokenFlags& flags) {
  client::Client daemon = DaemonFor(flags, "list");
  const Json answer = Json::parse(daemon.Get("/v1/tokens"));
  if (flags.json) return PrintDocument(answer);
  const int64_t now = SystemClock().UnixMs();
  const auto time = [](const Json& ms) {
    return ms.is_null() ? "never" : FormatLocal(ms.get<double>() / 1000);
  };
  Table table({{"ID", kRight}, {"USER"}, {"STATE"}, {"CREATED"}, {"EXPIRES"}, {"LAST USED"}});
  for (const Json& token : answer.at("tokens"))
    table.Add({token.at("id").dump(), token.at("user"),
               token.at("expires").get<int64_t>() > now ? "valid" : "expired",
               time(token.at("created")), time(token.at("expires")), time(token.at("last_used"))});
  fmt::print("{}", table.Text());
}

void Revoke(const TokenFlags& flags) {
  client::Client daemon = DaemonFor(flags, "revoke");
  const Json revoked =
      Json::parse(daemon.Post(fmt::format("/v1/tokens/{}/revoke", flags.id), "{}"));
  fmt::print("token {} of {} is revoked\n", flags.id, revoked.at("user").get<std::string>());
}

}  // namespace

void AddClusterTokenVerb(CLI::App& cluster) {
  CLI::App* verb = cluster.add_subcommand(
      "token", "Tokens of users who use the daemon over TCP (cluster up --listen)");
  verb->require_subcommand(1);
  const auto flags = std::make_shared<TokenFlags>();
  CLI::App* create = verb->add_subcommand("create", "Make a token for a user, and print its file");
  create->add_option("--user", flags->user, "Whose jobs its bearer submits and sees")->required();
  create->add_option("--expires", flags->expires, "For how long it is valid, at most 366d")
      ->capture_default_str();
  create->add_option("--address", flags->address,
                     "HOST:PORT where the user reaches the daemon (default: where it listens)");
  create->add_option("--output", flags->output,
                     "Write the file here, readable by nobody else (default: print it)");
  AddThisMachineOptions(*create, flags->cluster);
  create->footer(
      "The file holds the address, the daemon's pin and the token: hand it to the user in secret,\n"
      "who sets RENZAN_TOKEN_FILE to it. A token never has the operator's rights. Only for the\n"
      "daemon's owner and root, on its machine.\n"
      "Example: renzan cluster token create --user ann --output ann.token");
  create->callback([flags] { Create(*flags); });
  CLI::App* list = verb->add_subcommand("list", "List the tokens, without their secrets");
  list->add_flag("--json", flags->json, "Print JSON");
  AddThisMachineOptions(*list, flags->cluster);
  list->footer("LAST USED is noted once an hour.\nExample: renzan cluster token list");
  list->callback([flags] { List(*flags); });
  CLI::App* revoke = verb->add_subcommand("revoke", "End a token before it expires");
  revoke->add_option("ID", flags->id, "Its number in `renzan cluster token list`")
      ->required()
      ->check(AtLeast(1));
  AddThisMachineOptions(*revoke, flags->cluster);
  revoke->footer("It holds from the next request on.\nExample: renzan cluster token revoke 3");
  revoke->callback([flags] { Revoke(*flags); });
}

}  // namespace renzan
