#include "renzan/cluster/local/api_server.h"

#include <microhttpd.h>
#include <unistd.h>

#include <optional>

#include "renzan/base/log.h"
#include "renzan/cluster/local/api_socket.h"

namespace renzan::cluster {
namespace {

constexpr size_t kMaxBodyBytes = 4 << 20;
constexpr unsigned kMaxConnections = 512;
constexpr unsigned kIdleSeconds = 120;
constexpr size_t kStreamBlockBytes = 64 << 10;

// One request, from its first line until its answer has been sent.
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

int FdOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

ssize_t ReadStream(void* stream, uint64_t, char* data, size_t max) {
  const size_t got = static_cast<LogStream*>(stream)->Read(data, max);
  return got == 0 ? MHD_CONTENT_READER_END_OF_STREAM : static_cast<ssize_t>(got);
}

void FreeStream(void* stream) { delete static_cast<LogStream*>(stream); }

MHD_Result Send(MHD_Connection* connection, ApiResponse answer, bool last) {
  const bool streams = answer.stream != nullptr;
  MHD_Response* response =
      streams ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlockBytes, ReadStream,
                                                  answer.stream.release(), FreeStream)
              : MHD_create_response_from_buffer(answer.body.size(), answer.body.data(),
                                                MHD_RESPMEM_MUST_COPY);
  if (!response) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                          streams ? "text/plain; charset=utf-8" : "application/json");
  if (last) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

// The headers have come: who is it, and what do they want?
MHD_Result Begin(const ApiServer& server, MHD_Connection* connection, const char* url,
                 const char* method, void** state) {
  std::optional<Caller> caller;
  try {
    caller = PeerOf(FdOf(connection));
  } catch (const Error& error) {
    LogWarning("{}", error.what());
  }
  if (!caller || !MayAsk(*caller, server.allow_users()))
    return Send(connection,
                ErrorResponse(403, ErrorCode::kNoPermission,
                              "this daemon does not serve you: ask its operator"),
                true);
  auto exchange = std::make_unique<Exchange>();
  exchange->request = {
      .method = method, .path = SplitPath(url), .caller = *caller, .client_fd = FdOf(connection)};
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, AddQuery, &exchange->request.query);
  *state = exchange.release();
  return MHD_YES;
}

MHD_Result Handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char* data, size_t* bytes, void** state) {
  const ApiServer& server = *static_cast<const ApiServer*>(self);
  if (!*state) return Begin(server, connection, url, method, state);
  Exchange& exchange = *static_cast<Exchange*>(*state);
  if (*bytes > 0) {
    exchange.too_large |= exchange.request.body.size() + *bytes > kMaxBodyBytes;
    // The rest is read and dropped: only then is there somebody who reads the answer.
    if (exchange.too_large)
      exchange.request.body.clear();
    else
      exchange.request.body.append(data, *bytes);
    *bytes = 0;
    return MHD_YES;
  }
  if (exchange.too_large)
    return Send(connection,
                ErrorResponse(413, ErrorCode::kUsage,
                              fmt::format("the request has more than {} MiB", kMaxBodyBytes >> 20)),
                true);
  ApiResponse answer = Answer(server.context(), exchange.request);
  exchange.shut_down = answer.shut_down;
  return Send(connection, std::move(answer), exchange.shut_down);
}

void Completed(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
  const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(*state));
  *state = nullptr;
  if (exchange && exchange->shut_down) static_cast<const ApiServer*>(self)->ShutDown();
}

}  // namespace

void ApiServer::StopDaemon::operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }

ApiServer::ApiServer(ApiContext context, int listen_fd, std::vector<std::string> allow_users,
                     std::function<void()> shut_down)
    : context_(std::move(context)),
      allow_users_(std::move(allow_users)),
      shut_down_(std::move(shut_down)) {
  daemon_.reset(MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC,
      0, nullptr, nullptr, Handle, this, MHD_OPTION_LISTEN_SOCKET, listen_fd,
      MHD_OPTION_CONNECTION_LIMIT, kMaxConnections, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
      MHD_OPTION_NOTIFY_COMPLETED, Completed, this, MHD_OPTION_END));
  if (!daemon_) {
    ::close(listen_fd);
    Fail(ErrorCode::kOsError, "cannot start the API server: out of threads or memory");
  }
}

ApiServer::~ApiServer() = default;

}  // namespace renzan::cluster
