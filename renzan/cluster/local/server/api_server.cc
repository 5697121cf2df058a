#include "renzan/cluster/local/server/api_server.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "renzan/base/http/server_parts.h"
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
constexpr size_t kStreamBlockBytes = 64 << 10;

// One request, from its headers until the response has been sent.
struct Exchange {
  ApiRequest request;
  bool too_large = false;
  bool shut_down = false;
};

std::vector<std::string> SplitPath(const std::string& url) {
  std::vector<std::string> parts;
  for (size_t begin = 1; begin <= url.size();) {
    const size_t end = std::min(url.find('/', begin), url.size());
    parts.push_back(url.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

MHD_Result AddQuery(void* query, MHD_ValueKind, const char* key, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(query))[key] = value ? value : "";
  return MHD_YES;
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

// 0: no timeout.
void SetTimeout(MHD_Connection* connection, unsigned seconds) {
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

ssize_t ReadStream(void* stream, uint64_t, char* data, size_t max) {
  const size_t got = static_cast<LogStream*>(stream)->Read(data, max);
  return got == 0 ? MHD_CONTENT_READER_END_OF_STREAM : static_cast<ssize_t>(got);
}

void FreeStream(void* stream) { delete static_cast<LogStream*>(stream); }

MHD_Result Send(MHD_Connection* connection, ApiResponse answer, bool last) {
  const auto status = static_cast<unsigned>(answer.status);
  if (!answer.stream)
    return SendText(connection, status, answer.body, "application/json", last) ? MHD_YES : MHD_NO;
  MHD_Response* response = MHD_create_response_from_callback(
      MHD_SIZE_UNKNOWN, kStreamBlockBytes, ReadStream, answer.stream.release(), FreeStream);
  if (!response) return MHD_NO;
  // While a stream waits for new log output, the connection is idle and must not time out.
  // LogStream notices when the client disconnects.
  SetTimeout(connection, 0);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
  if (last) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

MHD_Result SendTooMany(ApiServer& server, MHD_Connection* connection) {
  return Send(connection,
              ErrorResponse(429, ErrorCode::kUnavailable,
                            fmt::format("too many connections to this daemon: at most {} of one "
                                        "user and {} of all users are served; end some of yours "
                                        "(job logs --follow, submit --follow) and try again",
                                        server.connections().LimitFor(DescriptorOf(connection)),
                                        server.limits().connections.all_users)),
              true);
}

// Called once the headers have arrived: checks the connection's limit and the caller.
MHD_Result Begin(ApiServer& server, MHD_Connection* connection, const char* url, const char* method,
                 void** state) {
  using Admission = ConnectionTable::Admission;
  ConnectionTable& connections = server.connections();
  const int fd = DescriptorOf(connection);
  connections.Asked(fd);
  Admission admission = connections.AdmissionOf(fd);
  if (admission == Admission::kNone) return MHD_NO;  // it has been shut down
  if (admission == Admission::kRefused) return SendTooMany(server, connection);
  Caller caller;
  try {
    caller = server.CallerOf(fd, MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                             MHD_HTTP_HEADER_AUTHORIZATION));
  } catch (const Error& error) {
    const bool unknown = IsTcp(fd) && error.code() == ErrorCode::kNoPermission;
    return Send(connection,
                unknown ? ErrorResponse(401, error.code(), error.what()) : ErrorResponse(error),
                true);
  }
  if (caller.by_token) {
    const bool owner = caller.uid == ::geteuid();
    admission = connections.Identify(fd, owner ? ConnectionTable::kOwnerByToken : caller.uid);
    if (admission == Admission::kNone) return MHD_NO;
    if (admission == Admission::kRefused) return SendTooMany(server, connection);
  }
  SetTimeout(connection, server.limits().within_request_seconds);
  auto exchange = std::make_unique<Exchange>();
  exchange->request = {
      .method = method, .path = SplitPath(url), .caller = std::move(caller), .client_fd = fd};
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, AddQuery, &exchange->request.query);
  *state = exchange.release();
  return MHD_YES;
}

MHD_Result Handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char* data, size_t* bytes, void** state) {
  ApiServer& server = *static_cast<ApiServer*>(self);
  if (!*state) return Begin(server, connection, url, method, state);
  Exchange& exchange = *static_cast<Exchange*>(*state);
  if (*bytes > 0) {
    exchange.too_large |= exchange.request.body.size() + *bytes > kMaxBodyBytes;
    // Read and drop the rest: clients read the response only after sending everything.
    if (exchange.too_large)
      exchange.request.body.clear();
    else
      exchange.request.body.append(data, *bytes);
    *bytes = 0;
    return MHD_YES;
  }
  if (exchange.too_large)
    return Send(
        connection,
        ErrorResponse(413, ErrorCode::kUsage,
                      fmt::format("the request is larger than {} MiB", kMaxBodyBytes >> 20)),
        true);
  ApiResponse answer = Answer(server.context(), exchange.request);
  exchange.shut_down = answer.shut_down;
  const bool last = exchange.shut_down || server.connections().IsCrowded(DescriptorOf(connection));
  return Send(connection, std::move(answer), last);
}

void Completed(void* self, MHD_Connection* connection, void** state, MHD_RequestTerminationCode) {
  const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(*state));
  *state = nullptr;
  ApiServer& server = *static_cast<ApiServer*>(self);
  SetTimeout(connection, server.limits().between_requests_seconds);
  if (exchange && exchange->shut_down) server.ShutDown();
}

void Changed(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
  if (what == MHD_CONNECTION_NOTIFY_CLOSED)
    static_cast<ApiServer*>(self)->Ended(DescriptorOf(connection));
}

}  // namespace

void ApiServer::StopDaemon::operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }

ApiServer::ApiServer(ApiContext context, Sockets sockets, std::vector<std::string> allow_users,
                     std::function<void()> shut_down, const ApiLimits& limits)
    : context_(std::move(context)),
      allow_users_(std::move(allow_users)),
      shut_down_(std::move(shut_down)),
      limits_(limits),
      connections_(limits.connections, ::geteuid()),
      sockets_(std::move(sockets)),
      stop_fd_(::eventfd(0, EFD_CLOEXEC)),
      room_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  daemon_.reset(Start(nullptr));
  if (sockets_.tcp_fd >= 0) tcp_daemon_.reset(Start(&sockets_.tls));
  const bool started = daemon_ && stop_fd_ >= 0 && room_fd_ >= 0;
  if (!started || (sockets_.tcp_fd >= 0 && !tcp_daemon_)) {
    CloseSockets();
    for (const int fd : {stop_fd_, room_fd_})
      if (fd >= 0) ::close(fd);
    if (started) Fail(ErrorCode::kConfig, "cannot serve TCP with the daemon's key");
    Fail(ErrorCode::kOsError, "cannot start the API server: out of threads or memory");
  }
  accepting_ = std::thread([this] { AcceptAll(); });
}

MHD_Daemon* ApiServer::Start(const TlsCredentials* credentials) {
  const TlsOptions tls(credentials);
  const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                         MHD_USE_POLL | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | tls.flags();
  return MHD_start_daemon(
      flags, 0, nullptr, nullptr, Handle, this, MHD_OPTION_CONNECTION_LIMIT,
      static_cast<unsigned>(limits_.connections.all() + kClosing), MHD_OPTION_CONNECTION_TIMEOUT,
      limits_.between_requests_seconds, MHD_OPTION_NOTIFY_COMPLETED, Completed, this,
      MHD_OPTION_NOTIFY_CONNECTION, Changed, this, MHD_OPTION_ARRAY, tls.get(), MHD_OPTION_END);
}

ApiServer::~ApiServer() {
  ::eventfd_write(stop_fd_, 1);
  accepting_.join();
  tcp_daemon_.reset();
  daemon_.reset();
  CloseSockets();
  for (const Queued& each : queue_) ::close(each.fd);
  ::close(stop_fd_);
  ::close(room_fd_);
}

void ApiServer::Ended(int fd) {
  connections_.Close(fd);
  ::eventfd_write(room_fd_, 1);
}

void ApiServer::CloseSockets() const {
  ::close(sockets_.listen_fd);
  if (sockets_.tcp_fd >= 0) ::close(sockets_.tcp_fd);
}

Caller ApiServer::CallerOf(int fd, const char* authorization) const {
  if (IsTcp(fd)) return context_.tokens->CallerOf(BearerOf(authorization));
  try {
    Caller caller = PeerOf(fd);
    if (IsAllowed(caller, allow_users_)) return caller;
  } catch (const Error& error) {
    LogWarning("{}", error.what());
  }
  Fail(ErrorCode::kNoPermission, "you may not use this daemon: ask its operator for access");
}

// libmicrohttpd does not accept connections itself, because it would start a thread for each before
// its user is known.
void ApiServer::AcceptAll() {
  for (;;) {
    const int silent = CloseSilent(), expires = UntilQueuedExpires();
    // poll() skips a descriptor of -1.
    pollfd fds[] = {{stop_fd_, POLLIN, 0},
                    {sockets_.listen_fd, POLLIN, 0},
                    {sockets_.tcp_fd, POLLIN, 0},
                    {room_fd_, POLLIN, 0}};
    ::poll(fds, 4,
           silent < 0 || expires < 0 ? std::max(silent, expires) : std::min(silent, expires));
    if (fds[0].revents != 0) return;
    eventfd_t ended = 0;
    ::eventfd_read(room_fd_, &ended);
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

// Returns in how many milliseconds the next connection will be overdue; -1: none can be.
int ApiServer::CloseSilent() {
  using std::chrono::ceil, std::chrono::milliseconds;
  const std::chrono::seconds allowed(limits_.first_request_seconds);
  const auto now = std::chrono::steady_clock::now();
  const auto oldest = connections_.CloseSilent(now - allowed);
  return oldest ? static_cast<int>(ceil<milliseconds>(*oldest + allowed - now).count()) + 1 : -1;
}

void ApiServer::Accept(int listen_fd) {
  const int fd = ::accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == ECONNABORTED || errno == EINTR || errno == EAGAIN) return;
    LogWarning("cannot accept a connection: {}", std::strerror(errno));
    pollfd stop{stop_fd_, POLLIN, 0};
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
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
  if (connections_.Open(fd, uid, std::chrono::steady_clock::now()) ==
      ConnectionTable::Admission::kNone) {
    ::close(fd);
  } else if (MHD_add_connection(IsTcp(fd) ? tcp_daemon_.get() : daemon_.get(), fd,
                                reinterpret_cast<sockaddr*>(&address), size) != MHD_YES) {
    connections_.Close(fd);  // MHD has closed the descriptor
  }
}

}  // namespace renzan::cluster::local
