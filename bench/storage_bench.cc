// One side of the comparisons in bench/object_store:
//
//   storage_bench serve              a store that forgets what it is given and invents what it is
//                                    asked for, so that a client's own speed can be measured;
//                                    prints its port and ends when its standard input does
//   storage_bench put FILE s3://...  prints seconds and CPU seconds
//   storage_bench get s3://...       the same, into a file without a name in $TMPDIR
//   storage_bench evict              chunks that a cache of a part of a dataset has to fetch when
//   it
//                                    evicts what is needed last, or what was used longest ago
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "bench/options.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/data/sample_order.h"
#include "renzan/storage/copy_file.h"
#include "renzan/storage/s3/s3_storage.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Serve() {
    while (ReadHead()) {
      SkipBody(NumberAfter("content-length: ", 0));
      Answer();
    }
  }

 private:
  bool ReadHead() {
    size_t end;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
      char buffer[16 << 10];
      const ssize_t count = ::recv(fd_, buffer, sizeof buffer, 0);
      if (count <= 0) return false;
      received_.append(buffer, static_cast<size_t>(count));
    }
    head_ = received_.substr(0, end + 2);
    received_.erase(0, end + 4);
    line_ = head_.substr(0, head_.find("\r\n"));
    for (char& c : head_) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (head_.find("expect: 100-continue") != std::string::npos)
      Send("HTTP/1.1 100 Continue\r\n\r\n");
    return true;
  }

  uint64_t NumberAfter(const char* name, uint64_t otherwise) const {
    const size_t at = head_.find(name);
    return at == std::string::npos
               ? otherwise
               : std::strtoull(head_.c_str() + at + std::strlen(name), nullptr, 10);
  }

  void SkipBody(uint64_t bytes) {
    const uint64_t early = std::min<uint64_t>(bytes, received_.size());
    received_.erase(0, early);
    static thread_local std::vector<char> buffer(1 << 20);
    for (bytes -= early; bytes > 0;) {
      const ssize_t count = ::recv(fd_, buffer.data(), std::min<uint64_t>(bytes, buffer.size()), 0);
      if (count <= 0) return;
      bytes -= static_cast<uint64_t>(count);
    }
  }

  void Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      text.remove_prefix(static_cast<size_t>(count));
    }
  }

  void SendAnswer(const char* status, const std::string& headers, const std::string& body) {
    Send(fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\nETag: \"{:032x}\"\r\n{}\r\n{}", status,
                     body.size(), 1, headers, body));
  }

  void Answer() {
    // An object's name ends with its size: "/test/object-1000000".
    const std::string path = line_.substr(line_.find(' ') + 1);
    const uint64_t size = std::strtoull(path.c_str() + path.find('-') + 1, nullptr, 10);
    const std::string method = line_.substr(0, line_.find(' '));
    if (method == "HEAD")
      return Send(
          fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"{:032x}\"\r\n"
                      "Last-Modified: Wed, 25 Nov 2026 00:00:00 GMT\r\n\r\n",
                      size, 1));
    if (method == "GET") return SendObject(size);
    if (method == "POST" && path.find("uploadId") == std::string::npos)
      return SendAnswer("200 OK", "",
                        "<InitiateMultipartUploadResult><UploadId>1</UploadId>"
                        "</InitiateMultipartUploadResult>");
    if (method == "POST")
      return SendAnswer("200 OK", "",
                        "<CompleteMultipartUploadResult><ETag>\"1\"</ETag>"
                        "</CompleteMultipartUploadResult>");
    SendAnswer("200 OK", "", "");
  }

  void SendObject(uint64_t size) {
    const uint64_t begin = NumberAfter("range: bytes=", 0);
    uint64_t end = size;
    if (const size_t dash = head_.find('-', head_.find("range: bytes=")); begin < size)
      if (head_.find("range: bytes=") != std::string::npos)
        end = std::min<uint64_t>(size, std::strtoull(head_.c_str() + dash + 1, nullptr, 10) + 1);
    Send(
        fmt::format("HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\n"
                    "Content-Range: bytes {}-{}/{}\r\nETag: \"{:032x}\"\r\n\r\n",
                    end - begin, begin, end - 1, size, 1));
    static const std::string zeros(1 << 20, '\0');
    for (uint64_t left = end - begin; left > 0;) {
      const uint64_t count = std::min<uint64_t>(left, zeros.size());
      Send(std::string_view(zeros).substr(0, count));
      left -= count;
    }
  }

  int fd_;
  std::string received_, head_, line_;
};

void Serve() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener, 128) == 0);
  CHECK(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  fmt::print("{}\n", ntohs(address.sin_port));
  std::fflush(stdout);
  std::thread([listener] {
    for (int fd; (fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;)
      std::thread([fd] { Connection(fd).Serve(); }).detach();
  }).detach();
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

void PrintTime(const std::function<void()>& work) {
  const double begin = SystemClock().MonotonicSeconds();
  work();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  fmt::print("{:.4f} {:.4f}\n", SystemClock().MonotonicSeconds() - begin,
             seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

// The chunks that each window of an epoch needs, of files with rows of 4, 52 and 104 bytes, as
// those of Criteo's data.
std::vector<int64_t> ChunksOf(const SampleOrder& order, int64_t window) {
  constexpr int64_t kChunk = 64 << 10, kFiles = 3, kRowBytes[kFiles] = {4, 52, 104};
  std::set<int64_t> chunks;
  for (const int64_t block : order.BlocksOfWindow(window)) {
    const auto [begin, end] = order.RowsOfBlock(block);
    for (int64_t file = 0; file < kFiles; ++file)
      for (int64_t c = begin * kRowBytes[file] / kChunk; c <= (end * kRowBytes[file] - 1) / kChunk;
           ++c)
        chunks.insert(c * kFiles + file);
  }
  return {chunks.begin(), chunks.end()};
}

void Evict(int64_t rows, int epochs, double part) {
  std::vector<int64_t> uses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const SampleOrder order(1, epoch, 0, rows);
    for (int64_t window = 0; window < order.num_windows(); ++window)
      for (const int64_t chunk : ChunksOf(order, window)) uses.push_back(chunk);
  }
  const std::set<int64_t> distinct(uses.begin(), uses.end());
  const size_t room = static_cast<size_t>(part * static_cast<double>(distinct.size()));
  const size_t last_epoch =
      uses.size() / static_cast<size_t>(epochs) * static_cast<size_t>(epochs - 1);
  std::vector<size_t> next(uses.size());
  std::unordered_map<int64_t, size_t> seen;
  for (size_t i = uses.size(); i-- > 0;) {
    const auto found = seen.find(uses[i]);
    next[i] = found == seen.end() ? uses.size() + static_cast<size_t>(uses[i]) : found->second;
    seen[uses[i]] = i;
  }
  size_t belady = 0, lru = 0;
  std::map<size_t, int64_t> by_next;  // of what is there
  std::unordered_map<int64_t, size_t> there;
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto found = there.find(uses[i]);
    if (found != there.end()) {
      by_next.erase(found->second);
    } else {
      belady += i >= last_epoch;
      if (there.size() == room) {
        const auto last = std::prev(by_next.end());
        there.erase(last->second);
        by_next.erase(last);
      }
    }
    by_next[next[i]] = uses[i];
    there[uses[i]] = next[i];
  }
  std::list<int64_t> recent;
  std::unordered_map<int64_t, std::list<int64_t>::iterator> place;
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto found = place.find(uses[i]);
    if (found != place.end()) {
      recent.erase(found->second);
    } else {
      lru += i >= last_epoch;
      if (place.size() == room) {
        place.erase(recent.back());
        recent.pop_back();
      }
    }
    recent.push_front(uses[i]);
    place[uses[i]] = recent.begin();
  }
  fmt::print("{} {} {} {}\n", uses.size() - last_epoch, distinct.size(), belady, lru);
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) {
  using namespace renzan;
  bench::Options command_line("One side of the comparisons in bench/object_store");
  std::string from, to;
  int64_t rows = 4'000'000;
  int epochs = 3;
  double part = 1.0 / 3;
  command_line.BeginSubcommand("serve", "A store without memory");
  command_line.BeginSubcommand("put", "Write a file to a store");
  command_line.Add("from", &from);
  command_line.Add("to", &to);
  command_line.BeginSubcommand("get", "Read a file from a store");
  command_line.Add("from", &from);
  command_line.BeginSubcommand("evict", "Two rules of eviction");
  command_line.Add("--rows", &rows);
  command_line.Add("--epochs", &epochs);
  command_line.Add("--part", &part, "of the dataset that the cache has room for");
  command_line.ParseOrExit(argc, argv);
  SetObjectStore([] { return s3::OpenS3(s3::ProcessEnvironment(), SystemClock(), {}); });
  try {
    if (command_line.Chosen("serve")) Serve();
    if (command_line.Chosen("put")) PrintTime([&] { CopyFile(from, to); });
    if (command_line.Chosen("get")) PrintTime([&] { Storage::Of(from).Fetch(from); });
    if (command_line.Chosen("evict")) Evict(rows, epochs, part);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_status();
  }
}
