#pragma once

// An HTTP/1.1 server for tests, in this process and on a port of this machine, that can break a
// connection at any point. Thread-safe.

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace renzan::s3 {

struct FakeRequest {
  std::string method, target;                  // as sent
  std::string path;                            // decoded, without the query
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  // Empty if there is none.
  std::string Query(const std::string& name) const;
  std::string Header(const std::string& name) const;
};

struct FakeAnswer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};  // for HEAD only its length is sent
  // Where the connection breaks. An answer without a body breaks in its head.
  enum class Cut { kNowhere, kBefore, kInHead, kInBody } cut = Cut::kNowhere;
};

class FakeHttpServer {
 public:
  using Handler = std::function<FakeAnswer(const FakeRequest&)>;

  // `handler` is called on one thread per connection.
  explicit FakeHttpServer(Handler handler);
  ~FakeHttpServer();

  std::string url() const;

 private:
  void Accept();
  void Serve(int connection);

  const Handler handler_;
  int listener_ = -1, port_ = 0;
  std::mutex mutex_;
  std::set<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace renzan::s3
