#include "renzan/cluster/kubernetes/process/path_server.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "renzan/base/process/tcp_listener.h"

namespace renzan::cluster::kubernetes {
namespace {

ServerHandlers ByPath(PathHandlers handlers) {
  using Answer = ServerHandlers::Answer;
  const auto begin = [handlers = std::move(handlers)](
                         const ServerRequest& request) -> std::variant<Answer, ServerAnswer> {
    const auto get = handlers.get.find(request.path);
    const auto post = handlers.post.find(request.path);
    const bool gets = get != handlers.get.end();
    if (!gets && post == handlers.post.end())
      return ServerAnswer{.status = 404, .text = "there is no such path\n"};
    if (request.method != (gets ? "GET" : "POST"))
      return ServerAnswer{.status = 405, .text = gets ? "only GET\n" : "only POST\n"};
    if (gets) return Answer([&probe = get->second](const std::string&) { return probe(); });
    return Answer(std::cref(post->second));
  };
  return {.begin = begin, .refuse = [](unsigned status, const std::string& why) {
            return ServerAnswer{.status = status, .text = why + "\n"};
          }};
}

std::string Url(int fd, bool tls) {
  std::string url = UrlOf(fd);
  if (tls) url.replace(0, 4, "https");
  return url;
}

}  // namespace

PathServer::PathServer(const std::string& address, PathHandlers handlers, const char* option,
                       std::optional<TlsCredentials> tls, const ServerLimits& limits)
    : fd_(ListenOnTcp(address, option)),
      url_(Url(fd_, tls.has_value())),
      server_({.name = address, .listen_fd = fd_, .tls = std::move(tls), .limits = limits},
              ByPath(std::move(handlers))) {}

}  // namespace renzan::cluster::kubernetes
