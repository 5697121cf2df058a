#pragma once

// Servers for tests, in the same process.

#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {

// An HTTP server that passes every request to one function and remembers what it was asked.
class TestServer {
 public:
  using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;

  explicit TestServer(Handler handler) : handler_(std::move(handler)) {
    server_.set_pre_routing_handler([this](const auto& request, auto& response) {
      if (request.has_header("Content-Length") && request.body.empty())
        return httplib::Server::HandlerResponse::Unhandled;  // its body is read first
      Handle(request, response);
      return httplib::Server::HandlerResponse::Handled;
    });
    const auto handle = [this](const auto& request, auto& response) { Handle(request, response); };
    server_.Post(".*", handle);
    server_.Put(".*", handle);
    server_.Patch(".*", handle);
    server_.Delete(".*", handle);
    port_ = server_.bind_to_any_port("127.0.0.1");
    CHECK(port_ > 0);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();  // else stop() does nothing
  }
  ~TestServer() {
    server_.stop();
    thread_.join();
  }

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  std::vector<httplib::Request> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void Handle(const httplib::Request& request, httplib::Response& response) {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request);
    }
    handler_(request, response);
  }

  Handler handler_;
  httplib::Server server_;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<httplib::Request> asked_;
  std::thread thread_;
};

// A server that gives each connection in turn to one function, which reads and writes its bytes.
class RawServer {
 public:
  using Handler = std::function<void(int connection, int index)>;

  explicit RawServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(::listen(listener_, 16) == 0);
    CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~RawServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

  // Reads until the head of a request and `body_end` have arrived; false at the end of the stream.
  static bool ReadRequest(int connection, std::string& request,
                          const std::string& body_end = "\r\n\r\n") {
    request.clear();
    char buffer[4096];
    while (request.find(body_end) == std::string::npos) {
      const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
      if (count <= 0) return false;
      request.append(buffer, static_cast<size_t>(count));
    }
    return true;
  }
  static void Send(int connection, std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      text.remove_prefix(static_cast<size_t>(count));
    }
  }
  static void SendAnswer(int connection, const std::string& body, const char* status = "200 OK") {
    Send(connection,
         fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body));
  }
  static void SendChunk(int connection, const std::string& text) {
    Send(connection, fmt::format("{:x}\r\n{}\r\n", text.size(), text));
  }
  // Returns when the client has gone.
  static void WaitForEnd(int connection) {
    char byte;
    while (::recv(connection, &byte, 1, 0) > 0) {
    }
  }

 private:
  void Serve() {
    for (int index = 0;; ++index) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      handler_(connection, index);
      ::close(connection);
    }
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace renzan::cluster::kubernetes
