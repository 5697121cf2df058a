#include "renzan/cluster/local/server/api_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/local/server/api_socket.h"
#include "renzan/cluster/local/server/api_tcp.h"
#include "renzan/cluster/local/server/tokens.h"

namespace renzan::cluster::local {
namespace {

constexpr size_t kMaxBodyBytes = 4 << 20;
constexpr int kOutOfDescriptorsMs = 500;
// Connections that are being closed, which libmicrohttpd still counts.
constexpr int kClosing = 16;

std::vector<std::string> SplitPath(const std::string& url) {
  std::vector<std::string> parts;
  for (size_t begin = 1; begin <= url.size();) {
    const size_t end = std::min(url.find('/', begin), url.size());
    parts.push_back(url.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Begin() rejects unknown peers. All TCP clients share the limit of one user until they show a
// token, because anybody can connect.
uid_t UidOrNobody(int fd) {
  if (IsTcp(fd)) return ConnectionTable::kAnybody;
  try {
    return PeerUidOf(fd);
  } catch (const Error&) {
    return ConnectionTable::kAnybody;
  }
}

ServerAnswer Outgoing(ServerAnswer answer, bool last) {
  answer.last |= last;
  if (!answer.stream) answer.content_type = "application/json";
  return answer;
}

}  // namespace

ApiServer::ApiServer(ApiContext context, Sockets sockets, std::vector<std::string> allow_users,
                     const ApiLimits& limits)
    : context_(std::move(context)),
      allow_users_(std::move(allow_users)),
      limits_(limits),
      connections_(limits.connections, ::geteuid()),
      socket_(sockets.listen_fd),
      tcp_socket_(sockets.tcp_fd),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      room_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_ || !room_) FailErrno(errno, "cannot create an eventfd");
  HttpServer::Options options{
      .name = "the API",
      .thread_per_connection = true,
      .limits = {.connections = static_cast<unsigned>(limits_.connections.all() + kClosing),
                 .idle_seconds = limits_.between_requests_seconds,
                 .idle_in_request_seconds = limits_.within_request_seconds,
                 .request_seconds = static_cast<double>(limits_.first_request_seconds),
                 .first_headers_only = true,
                 .body_bytes = kMaxBodyBytes,
                 .bodies_bytes = SIZE_MAX}};
  server_.emplace(options, Handlers());
  if (tcp_socket_) {
    options.name = "the API over TCP";
    options.tls = std::move(sockets.tls);
    tcp_server_.emplace(options, Handlers());
  }
  accepting_ = std::thread([this] { AcceptAll(); });
}

ApiServer::~ApiServer() {
  ::eventfd_write(stop_.get(), 1);
  accepting_.join();
  tcp_server_.reset();
  server_.reset();
  for (const Queued& each : queue_) ::close(each.fd);
}

ServerHandlers ApiServer::Handlers() {
  return {.begin = [this](const ServerRequest& request) { return BeginRequest(request); },
          .refuse =
              [](unsigned status, const std::string& why) {
                return Outgoing(ErrorResponse(status, ErrorCode::kUsage, why), /*last=*/true);
              },
          .closed =
              [this](int fd) {
                connections_.Close(fd);
                ::eventfd_write(room_.get(), 1);
              }};
}

ServerAnswer ApiServer::TooMany(int fd) {
  return Outgoing(
      ErrorResponse(429, ErrorCode::kUnavailable,
                    fmt::format("too many connections to this daemon: at most {} of one user and "
                                "{} of all users are served; end some of yours (job logs --follow, "
                                "submit --follow) and try again",
                                connections_.LimitFor(fd), limits_.connections.all_users)),
      /*last=*/true);
}

// The headers have arrived: checks the connection's limit and the caller.
ApiServer::Begun ApiServer::BeginRequest(const ServerRequest& request) {
  using Admission = ConnectionTable::Admission;
  const ServerAnswer none{.status = 0};
  const int fd = request.fd;
  connections_.Asked(fd);
  Admission admission = connections_.AdmissionOf(fd);
  if (admission == Admission::kNone) return none;  // it has been shut down
  if (admission == Admission::kRefused) return TooMany(fd);
  Caller caller;
  try {
    caller = CallerOf(request);
  } catch (const Error& error) {
    const bool unknown = IsTcp(fd) && error.code() == ErrorCode::kNoPermission;
    return Outgoing(unknown ? ErrorResponse(401, error.code(), error.what()) : ErrorResponse(error),
                    /*last=*/true);
  }
  if (caller.by_token) {
    const bool owner = caller.uid == ::geteuid();
    admission = connections_.Identify(fd, owner ? ConnectionTable::kOwnerByToken : caller.uid);
    if (admission == Admission::kNone) return none;
    if (admission == Admission::kRefused) return TooMany(fd);
  }
  ApiRequest whole{.method = request.method,
                   .path = SplitPath(request.path),
                   .query = request.query,
                   .caller = std::move(caller),
                   .client_fd = fd};
  return [this, whole = std::move(whole)](std::string body) mutable {
    whole.body = std::move(body);
    return Outgoing(Answer(context_, whole), connections_.IsCrowded(whole.client_fd));
  };
}

Caller ApiServer::CallerOf(const ServerRequest& request) const {
  if (IsTcp(request.fd)) return context_.tokens->CallerOf(BearerOf(request.authorization));
  try {
    Caller caller = PeerOf(request.fd);
    if (IsAllowed(caller, allow_users_)) return caller;
  } catch (const Error& error) {
    LogWarning("{}", error.what());
  }
  Fail(ErrorCode::kNoPermission, "you may not use this daemon: ask its operator for access");
}

// The HTTP servers do not accept connections themselves, because they would start a thread for each
// before its user is known.
void ApiServer::AcceptAll() {
  for (;;) {
    // poll() skips a descriptor of -1.
    pollfd fds[] = {{stop_.get(), POLLIN, 0},
                    {socket_.get(), POLLIN, 0},
                    {tcp_socket_.get(), POLLIN, 0},
                    {room_.get(), POLLIN, 0}};
    ::poll(fds, 4, UntilQueuedExpires());
    if (fds[0].revents != 0) return;
    eventfd_t ended = 0;
    ::eventfd_read(room_.get(), &ended);
    ServeQueued();
    for (const pollfd& each : {fds[1], fds[2]})
      if (each.revents != 0) Accept(each.fd);
  }
}

// In how many milliseconds; -1: none is queued.
int ApiServer::UntilQueuedExpires() const {
  using std::chrono::ceil, std::chrono::milliseconds;
  if (queue_.empty()) return -1;
  const auto left = queue_.front().since + std::chrono::seconds(limits_.queued_seconds) -
                    std::chrono::steady_clock::now();
  return static_cast<int>(std::max<int64_t>(0, ceil<milliseconds>(left).count()));
}

size_t ApiServer::QueuedOf(uid_t uid) const {
  return static_cast<size_t>(std::count_if(queue_.begin(), queue_.end(),
                                           [&](const Queued& each) { return each.uid == uid; }));
}

// Those that have waited for too long get the error.
void ApiServer::ServeQueued() {
  if (queue_.empty()) return;
  const auto expired =
      std::chrono::steady_clock::now() - std::chrono::seconds(limits_.queued_seconds);
  std::deque<Queued> queue;
  std::swap(queue, queue_);
  for (const Queued& each : queue) {
    if (each.since <= expired || connections_.HasRoomFor(each.uid))
      Begin(each.fd, each.uid);
    else
      queue_.push_back(each);
  }
}

void ApiServer::Accept(int listen_fd) {
  const int fd = ::accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == ECONNABORTED || errno == EINTR || errno == EAGAIN) return;
    LogWarning("cannot accept a connection: {}", std::strerror(errno));
    pollfd stop{stop_.get(), POLLIN, 0};
    ::poll(&stop, 1, kOutOfDescriptorsMs);
    return;
  }
  const uid_t uid = UidOrNobody(fd);
  // Each in its turn.
  const size_t of_user = queue_.empty() ? 0 : QueuedOf(uid);
  if ((of_user > 0 || !connections_.HasRoomFor(uid)) && of_user < limits_.queued_per_user &&
      queue_.size() < limits_.queued && limits_.queued_seconds > 0)
    queue_.push_back({fd, uid, std::chrono::steady_clock::now()});
  else
    Begin(fd, uid);
}

void ApiServer::Begin(int fd, uid_t uid) {
  if (connections_.Open(fd, uid, std::chrono::steady_clock::now()) ==
      ConnectionTable::Admission::kNone) {
    ::close(fd);
  } else if (!(IsTcp(fd) ? tcp_server_ : server_)->Add(fd)) {
    connections_.Close(fd);  // Add() has closed the descriptor
  }
}

}  // namespace renzan::cluster::local
