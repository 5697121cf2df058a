#include "renzan/cluster/local/server/api_server_testing.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "renzan/base/error.h"
#include "renzan/base/process/tcp_listener.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/local/server/api_socket.h"
#include "renzan/cluster/local/supervisor/job_user.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {

int Connect(const std::string& socket) {
  const bool tcp = socket.starts_with("https://");
  const int fd = ::socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval long_enough{.tv_sec = 30};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &long_enough, sizeof long_enough);
  sockaddr_un by_path{.sun_family = AF_UNIX};
  std::strncpy(by_path.sun_path, socket.c_str(), sizeof by_path.sun_path - 1);
  sockaddr_in by_port{.sin_family = AF_INET, .sin_addr = {.s_addr = ::htonl(INADDR_LOOPBACK)}};
  if (tcp) by_port.sin_port = ::htons(std::stoi(socket.substr(socket.rfind(':') + 1)));
  const auto* address = tcp ? reinterpret_cast<const sockaddr*>(&by_port)
                            : reinterpret_cast<const sockaddr*>(&by_path);
  if (::connect(fd, address, tcp ? sizeof by_port : sizeof by_path) == 0) return fd;
  ::close(fd);
  return -1;
}

std::string ReceiveAll(int fd) {
  std::string answer;
  char block[4096];
  ssize_t got;
  while ((got = ::recv(fd, block, sizeof block, 0)) > 0) answer.append(block, got);
  return answer;
}

std::string Ask(const std::string& socket, const std::string& method, const std::string& target,
                const std::string& body) {
  const int fd = Connect(socket);
  if (fd < 0) return "";
  const std::string request =
      fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
                  method, target, body.size(), body);
  ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  const std::string answer = ReceiveAll(fd);
  ::close(fd);
  return answer;
}

nlohmann::json BodyOf(const std::string& answer) {
  return nlohmann::json::parse(answer.substr(std::min(answer.size(), answer.find("\r\n\r\n"))),
                               nullptr, false);
}

ServedApi::ServedApi() : stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
  spec::ClusterConfig config;
  config.pools["own"].resources.gpu = 4;
  controller_ = std::make_unique<Controller>(
      ControllerOptions{.state_dir = directory_.path(),
                        .uid = ::geteuid(),
                        .schedule = [](const Snapshot& snapshot) { return Schedule(snapshot); },
                        .validate =
                            [this](const Snapshot& snapshot, const Decisions& decisions) {
                              Validated validated = Validate(snapshot, decisions);
                              if (!fault_.empty()) validated.faults.push_back(fault_);
                              return validated;
                            },
                        .why_infeasible = [](const Snapshot&, const Job& job) -> std::string {
                          return job.min_workers > 9 ? "there is no room for ten workers" : "";
                        }},
      spec::MakeSnapshot(config, 0), store_, agent_, SystemClock());
  controller_->Recover();
  loop_ = std::make_unique<Loop>(*controller_, -1);
  Serve({});
  thread_ = std::thread([this] { loop_->Serve(); });
}

ServedApi::~ServedApi() {
  loop_->Stop();
  thread_.join();
  ::eventfd_write(stop_fd_, 1);
  server_.reset();
  ::close(stop_fd_);
}

void ServedApi::Serve(const ApiLimits& limits, const std::vector<std::string>& allow_users) {
  server_.reset();
  const int tcp_fd = ListenOnTcp("127.0.0.1:0");
  url_ = UrlForClients(tcp_fd);
  server_ = std::make_unique<ApiServer>(
      ApiContext{.loop = *loop_,
                 .state_dir = directory_.path(),
                 .uid = ::geteuid(),
                 .tcp = url_,
                 .tcp_pin = identity_.pin,
                 .tokens = &tokens_,
                 .stop_fd = stop_fd_},
      ApiServer::Sockets{ListenOn(socket_, true), tcp_fd, identity_.tls}, allow_users, limits);
}

std::string ServedApi::Submit(const std::string& yaml) {
  return Ask(socket_, "POST", "/v1/jobs",
             nlohmann::json{{"spec", yaml}, {"source", "job.yaml"}, {"submit_dir", "/tmp"}}.dump());
}

std::string ServedApi::Bearer() { return ::geteuid() == 0 ? "nobody" : UserName(::geteuid()); }

HttpAnswer ServedApi::AskTcp(const std::string& token, const std::string& method,
                             const std::string& target, const std::string& body) {
  HttpRequest request{.method = method, .url = url_ + target, .body = body, .pinned_key = pin_};
  if (!token.empty()) request.headers.emplace_back("Authorization", "Bearer " + token);
  request.fresh_connection = true;
  return http_.Send(request);
}

}  // namespace renzan::cluster::local
