#include "renzan/comm/gloo/gloo_store.h"

#include <httplib.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/comm/gloo/local_address.h"

namespace renzan {
namespace {

constexpr int kOk = 200, kNotFound = 404, kConflict = 409;
constexpr std::chrono::seconds kRequestTimeout(5);

httplib::Client MakeClient(const std::string& host, int port) {
  httplib::Client client(host, port);
  client.set_connection_timeout(kRequestTimeout);
  client.set_read_timeout(kRequestTimeout);
  client.set_write_timeout(kRequestTimeout);
  return client;
}

}  // namespace

struct GlooStoreServer::State {
  httplib::Server server;
  std::thread thread;
  int world_size;

  std::mutex mutex;
  std::map<std::string, std::string> values;
  std::vector<bool> joined;

  // An empty answer means accepted.
  std::string Join(const std::string& rank, const std::string& size) {
    std::lock_guard lock(mutex);
    if (size != std::to_string(world_size))
      return fmt::format("worker {} was started with WORLD_SIZE={}, worker 0 with WORLD_SIZE={}",
                         rank, size, world_size);
    const size_t index = std::stoul(rank);
    if (index >= joined.size()) return fmt::format("RANK={} is out of range", rank);
    if (joined[index]) return fmt::format("two workers were started with RANK={}", rank);
    joined[index] = true;
    return "";
  }

  std::string Missing() {
    std::lock_guard lock(mutex);
    std::string missing;
    for (size_t rank = 0; rank < joined.size(); ++rank)
      if (!joined[rank]) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
    return missing;
  }

  void AddHandlers() {
    server.Post("/join", [this](const httplib::Request& request, httplib::Response& response) {
      const std::string error =
          Join(request.get_param_value("rank"), request.get_param_value("world_size"));
      response.status = error.empty() ? kOk : kConflict;
      response.set_content(error, "text/plain");
    });
    server.Get("/missing", [this](const httplib::Request&, httplib::Response& response) {
      response.status = kOk;
      response.set_content(Missing(), "text/plain");
    });
    server.Put(R"(/values/(\w+))",
               [this](const httplib::Request& request, httplib::Response& response) {
                 std::lock_guard lock(mutex);
                 values[request.matches[1]] = request.body;
                 response.status = kOk;
               });
    server.Get(R"(/values/(\w+))",
               [this](const httplib::Request& request, httplib::Response& response) {
                 std::lock_guard lock(mutex);
                 const auto found = values.find(request.matches[1]);
                 response.status = found == values.end() ? kNotFound : kOk;
                 if (found != values.end())
                   response.set_content(found->second, "application/octet-stream");
               });
  }
};

GlooStoreServer::GlooStoreServer(const std::string& host, int port, int world_size)
    : state_(std::make_unique<State>()) {
  state_->world_size = world_size;
  state_->joined.resize(static_cast<size_t>(world_size));
  state_->AddHandlers();
  // Without the library's default SO_REUSEPORT, which would let two programs silently share the
  // port.
  state_->server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  const std::optional<std::string> address = ListenAddress(host);
  if (!address)
    LogWarning(
        "MASTER_ADDR {} is not an address of this machine that others can reach: worker 0 listens "
        "on all networks until all workers have connected",
        host);
  errno = 0;
  if (!state_->server.bind_to_port(address.value_or("0.0.0.0"), port)) {
    const int error = errno;
    Fail(ErrorCode::kUnavailable,
         "worker 0 cannot listen on port {} of {}: {}; set MASTER_PORT to a free port for all "
         "workers",
         port, host, error != 0 ? std::strerror(error) : "unknown error");
  }
  state_->thread = std::thread([this] { state_->server.listen_after_bind(); });
  while (!state_->server.is_running()) std::this_thread::yield();
}

GlooStoreServer::~GlooStoreServer() {
  state_->server.stop();
  state_->thread.join();
}

GlooStoreClient::GlooStoreClient(std::string host, int port)
    : host_(std::move(host)), port_(port) {}

void GlooStoreClient::FailGone() const {
  Fail(ErrorCode::kUnavailable, "worker 0 at {}:{} no longer answers", host_, port_);
}

bool GlooStoreClient::Join(int rank, int world_size) {
  const auto answer =
      MakeClient(host_, port_)
          .Post("/join", httplib::Params{{"rank", std::to_string(rank)},
                                         {"world_size", std::to_string(world_size)}});
  if (!answer) return false;
  if (answer->status == kConflict) Fail(ErrorCode::kUsage, "{}", answer->body);
  if (answer->status != kOk)
    Fail(ErrorCode::kUnavailable,
         "{}:{} is used by another program (HTTP status {}): set MASTER_PORT to a free port", host_,
         port_, answer->status);
  return true;
}

std::string GlooStoreClient::Missing() {
  const auto answer = MakeClient(host_, port_).Get("/missing");
  if (!answer || answer->status != kOk) FailGone();
  return answer->body;
}

void GlooStoreClient::Set(const std::string& key, const std::vector<char>& value) {
  const auto answer =
      MakeClient(host_, port_)
          .Put("/values/" + key, {value.begin(), value.end()}, "application/octet-stream");
  if (!answer || answer->status != kOk) FailGone();
}

std::optional<std::vector<char>> GlooStoreClient::Get(const std::string& key) {
  const auto answer = MakeClient(host_, port_).Get("/values/" + key);
  if (answer && answer->status == kNotFound) return std::nullopt;
  if (!answer || answer->status != kOk) FailGone();
  return std::vector<char>(answer->body.begin(), answer->body.end());
}

}  // namespace renzan
