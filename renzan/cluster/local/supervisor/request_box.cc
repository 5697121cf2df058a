#include "renzan/cluster/local/supervisor/request_box.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/supervisor/spare_file.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::ordered_json;

// Files without it are incomplete.
constexpr const char* kSuffix = ".request";

// A stop, and a failed node or a shorter notice before the supervisor has read that.
constexpr int kSpares = 2;
constexpr size_t kSpareBytes = 4096;

constexpr const char* kStop = "stop";
constexpr const char* kCheckpoint = "checkpoint";
constexpr const char* kNodeFailed = "node lost";  // the word that earlier supervisors understand
constexpr const char* kTimeLimit = "time limit";

std::string ToText(const AttemptRequest& request) {
  Json json;
  switch (request.kind) {
    case AttemptRequest::Kind::kStop:
      json = {{"request", kStop}, {"grace_seconds", request.grace_seconds}};
      break;
    case AttemptRequest::Kind::kCheckpoint:
      json = {{"request", kCheckpoint}};
      break;
    case AttemptRequest::Kind::kNodeFailed:
      json = {{"request", kNodeFailed}, {"node", request.node}};
      break;
    case AttemptRequest::Kind::kTimeLimit:
      json = {{"request", kTimeLimit}, {"timeout_ms", request.timeout_ms}};
      break;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<AttemptRequest> FromText(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const std::string kind = json.at("request");
    if (kind == kStop)
      return AttemptRequest{.kind = AttemptRequest::Kind::kStop,
                            .grace_seconds = json.at("grace_seconds")};
    if (kind == kCheckpoint) return AttemptRequest{.kind = AttemptRequest::Kind::kCheckpoint};
    if (kind == kNodeFailed) {
      std::string node = json.at("node");
      return AttemptRequest{.kind = AttemptRequest::Kind::kNodeFailed, .node = std::move(node)};
    }
    if (kind == kTimeLimit)
      return AttemptRequest{.kind = AttemptRequest::Kind::kTimeLimit,
                            .timeout_ms = json.at("timeout_ms")};
  } catch (const Json::exception&) {
  }
  return std::nullopt;
}

// Unique, and ordered by time.
std::string NewName() {
  static std::atomic<int> count = 0;
  return fmt::format("{:020.6f}-{}-{:06}{}", SystemClock().UnixSeconds(), getpid(), count++,
                     kSuffix);
}

std::vector<std::string> SparesIn(const std::string& requests) {
  std::vector<std::string> spares;
  for (int i = 0; i < kSpares; ++i) spares.push_back(fmt::format("{}/spare-{}", requests, i));
  return spares;
}

// Its blocks stay allocated if they are those of a spare file.
void Discard(const std::string& path, const std::string& requests) {
  for (const std::string& spare : SparesIn(requests))
    if (!FileExists(spare) && rename(path.c_str(), spare.c_str()) == 0) return;
  unlink(path.c_str());
}

}  // namespace

void MakeRequestBox(const AttemptPaths& paths) {
  if (mkdir(paths.requests.c_str(), 0700) != 0 && errno != EEXIST)
    FailErrno(errno, fmt::format("cannot create {}", paths.requests));
  if (mkfifo(paths.wake.c_str(), 0600) != 0 && errno != EEXIST)
    FailErrno(errno, fmt::format("cannot create {}", paths.wake));
}

void MakeSpareRequests(const AttemptPaths& paths) {
  for (const std::string& spare : SparesIn(paths.requests)) MakeSpare(spare, kSpareBytes);
}

void RemoveSpareRequests(const AttemptPaths& paths) {
  for (const std::string& spare : SparesIn(paths.requests)) unlink(spare.c_str());
}

void PostRequest(const AttemptPaths& paths, const AttemptRequest& request) {
  if (!FileExists(paths.requests))
    Fail(ErrorCode::kNoInput, "no attempt was started in {}", paths.directory);
  WriteEvenIfFull(fmt::format("{}/{}", paths.requests, NewName()), ToText(request),
                  SparesIn(paths.requests));
  const int fd = open(paths.wake.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    // No supervisor has it open: it has not started yet and will look then, or it has ended.
    if (errno == ENXIO || errno == ENOENT) return;
    FailErrno(errno, fmt::format("cannot open {}", paths.wake));
  }
  // A full pipe (EAGAIN) wakes it as well.
  if (write(fd, "", 1) != 1 && errno != EAGAIN)
    LogWarning("cannot wake the supervisor through {}: {}", paths.wake,
               std::generic_category().message(errno));
  close(fd);
}

RequestInbox::RequestInbox(const AttemptPaths& paths)
    : requests_(paths.requests), wake_(paths.wake) {
  // Also for writing, so that it does not reach its end when a requester closes it.
  fd_ = open(paths.wake.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd_ < 0) FailErrno(errno, fmt::format("cannot open {}", paths.wake));
}

RequestInbox::~RequestInbox() {
  unlink(wake_.c_str());
  close(fd_);
}

std::vector<AttemptRequest> RequestInbox::Take() {
  char bytes[256];
  while (read(fd_, bytes, sizeof(bytes)) > 0) {
  }
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(requests_, error))
    if (entry.path().extension() == kSuffix) paths.push_back(entry.path().string());
  if (error) LogWarning("cannot list {}: {}", requests_, error.message());
  std::sort(paths.begin(), paths.end());

  std::vector<AttemptRequest> requests;
  for (const std::string& path : paths) {
    try {
      if (const std::optional<AttemptRequest> request = FromText(ReadFile(path))) {
        requests.push_back(*request);
      } else {
        LogWarning("ignoring {}: not a valid request", path);
      }
    } catch (const Error& error) {
      LogWarning("{}", error.what());  // no reason to end the workers
      continue;
    }
    Discard(path, requests_);
  }
  return requests;
}

}  // namespace renzan::cluster::local
