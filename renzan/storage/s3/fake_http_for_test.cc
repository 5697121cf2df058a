#include "renzan/storage/s3/fake_http_for_test.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "renzan/base/error.h"

namespace renzan::s3 {
namespace {

std::string Decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    CHECK(i + 2 < text.size());
    decoded += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return decoded;
}

bool Receive(int connection, std::string* buffer) {
  char piece[64 << 10];
  const ssize_t count = ::recv(connection, piece, sizeof piece, 0);
  if (count <= 0) return false;
  buffer->append(piece, static_cast<size_t>(count));
  return true;
}

bool Send(int connection, std::string_view text, int flags = 0) {
  while (!text.empty()) {
    const ssize_t count = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL | flags);
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void ParseTarget(FakeRequest* request) {
  const std::string_view target = request->target;
  const size_t question = target.find('?');
  request->path = Decode(target.substr(0, question));
  if (question == std::string_view::npos) return;
  std::string_view query = target.substr(question + 1);
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    CHECK(equals != std::string_view::npos);
    request->query[Decode(pair.substr(0, equals))] = Decode(pair.substr(equals + 1));
  }
}

// The lines before the empty one; understands only what libcurl writes.
FakeRequest ParseHead(std::string_view head) {
  FakeRequest request;
  const std::string_view first = head.substr(0, head.find("\r\n"));
  const size_t space = first.find(' '), end = first.rfind(' ');
  CHECK(space < end);
  request.method = first.substr(0, space);
  request.target = first.substr(space + 1, end - space - 1);
  for (head.remove_prefix(first.size() + 2); !head.empty();) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(head.size(), line.size() + 2));
    const size_t colon = line.find(':');
    CHECK(colon != std::string_view::npos);
    std::string name(line.substr(0, colon));
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    request.headers[name] = line.substr(std::min(line.size(), colon + 2));
  }
  ParseTarget(&request);
  return request;
}

// Reads one request from the connection. `buffer` holds bytes already received, also of the next
// request.
bool Read(int connection, std::string* buffer, FakeRequest* request) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  size_t end;
  while ((end = buffer->find(kEnd)) == std::string::npos)
    if (!Receive(connection, buffer)) return false;
  *request = ParseHead(std::string_view(*buffer).substr(0, end + 2));
  buffer->erase(0, end + kEnd.size());
  const size_t bytes = std::stoull("0" + request->Header("content-length"));
  buffer->reserve(bytes);
  while (buffer->size() < bytes)
    if (!Receive(connection, buffer)) return false;
  std::string rest = buffer->substr(bytes);
  buffer->resize(bytes);
  request->body = std::exchange(*buffer, std::move(rest));
  return true;
}

// False if the connection ends with this answer.
bool Write(int connection, const FakeRequest& request, const FakeAnswer& answer) {
  if (answer.cut == FakeAnswer::Cut::kBefore) return false;
  std::string head = fmt::format("HTTP/1.1 {} Status\r\n", answer.status);
  for (const auto& [name, value] : answer.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (answer.status != 204) head += fmt::format("Content-Length: {}\r\n", answer.body.size());
  head += "\r\n";
  std::string_view body = request.method == "HEAD" ? std::string_view() : answer.body;
  if (answer.cut == FakeAnswer::Cut::kNowhere)
    return Send(connection, head, body.empty() ? 0 : MSG_MORE) && Send(connection, body);
  const bool in_head = answer.cut == FakeAnswer::Cut::kInHead || body.empty();
  Send(connection, std::string_view(head).substr(0, in_head ? head.size() / 2 : head.size()));
  if (!in_head) Send(connection, body.substr(0, body.size() / 2));
  return false;
}

}  // namespace

std::string FakeRequest::Query(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

std::string FakeRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

FakeHttpServer::FakeHttpServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 64) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

FakeHttpServer::~FakeHttpServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int connection : open_) ::shutdown(connection, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

std::string FakeHttpServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

void FakeHttpServer::Accept() {
  while (true) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    const int on = 1;
    ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    open_.insert(connection);
    threads_.emplace_back([this, connection] { Serve(connection); });
  }
}

void FakeHttpServer::Serve(int connection) {
  std::string buffer;
  for (FakeRequest request; Read(connection, &buffer, &request);)
    if (!Write(connection, request, handler_(request))) break;
  const std::lock_guard lock(mutex_);
  open_.erase(connection);
  ::close(connection);
}

}  // namespace renzan::s3
