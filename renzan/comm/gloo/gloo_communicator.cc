// Gloo over TCP. Operations use Gloo's point-to-point messages: its collectives need one contiguous
// buffer and do not say which peer failed. Each pair of workers has one connection; an operation
// posts all its receives and sends and then waits, so its time is one latency plus the transfer
// over the slowest link.

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/backends.h"
#include "renzan/comm/gloo/gloo_store.h"
#include "renzan/comm/gloo/local_address.h"

namespace renzan {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using UnboundBuffer = gloo::transport::UnboundBuffer;

constexpr milliseconds kPollInterval(5);

// Strips the source location from Gloo's messages, such as "[../gloo/transport/tcp/pair.cc:598]
// Connection closed by peer [127.0.0.1]:4711".
std::string Reason(const std::exception& error) {
  const std::string text = error.what();
  const size_t bracket = text.find("] ");
  return text.starts_with('[') && bracket != std::string::npos ? text.substr(bracket + 2) : text;
}

std::string JoinNumbers(const std::vector<int>& numbers) {
  std::string text;
  for (int number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return text;
}

// Our store behind Gloo's interface. All workers have joined before Gloo looks up addresses, so a
// missing key means that a worker has died.
class Store : public gloo::rendezvous::Store {
 public:
  Store(GlooStoreClient& client, milliseconds timeout) : client_(client), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    client_.Set(key, data);
  }

  // Gloo expects get() to wait for the key.
  std::vector<char> get(const std::string& key) override {
    const auto deadline = steady_clock::now() + timeout_;
    for (;;) {
      if (std::optional<std::vector<char>> value = client_.Get(key)) return *std::move(value);
      if (steady_clock::now() > deadline)
        Fail(ErrorCode::kUnavailable, "a worker died during the rendezvous (key {})", key);
      std::this_thread::sleep_for(kPollInterval);
    }
  }

  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }

  void wait(const std::vector<std::string>& keys, const milliseconds&) override {
    for (const std::string& key : keys) get(key);
  }

 private:
  GlooStoreClient& client_;
  milliseconds timeout_;
};

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(const Rendezvous& rendezvous, double timeout_seconds)
      : timeout_(static_cast<int64_t>(timeout_seconds * 1000)) {
    std::unique_ptr<GlooStoreServer> server;
    if (rendezvous.rank == 0)
      server = std::make_unique<GlooStoreServer>(rendezvous.master_addr, rendezvous.master_port,
                                                 rendezvous.world_size);
    GlooStoreClient client(rendezvous.master_addr, rendezvous.master_port);
    JoinWithin(client, rendezvous);
    Connect(client, rendezvous);
    // The server ends after this: wait until all workers have read all addresses.
    Barrier();
  }

  // Does not wait: the kernel delivers what is on its way to slower peers, and those that still
  // need this worker get an error. closeConnections() would reset the connections instead, and what
  // had not arrived would be lost.
  ~GlooCommunicator() override = default;

  int rank() const override { return context_->rank; }
  int world_size() const override { return context_->size; }
  const char* backend() const override { return "gloo"; }

  Ticket Post(const char* operation, std::span<const std::span<const std::byte>> send,
              std::span<const std::span<std::byte>> recv) override {
    CHECK(send.size() == Size() && recv.size() == Size());
    return Start(
        operation, [&](size_t p) { return send[p]; }, [&](size_t p) { return recv[p]; });
  }

  void Wait(Ticket ticket) override {
    InFlight& exchange = in_flight_[ticket];
    if (failed_)
      Fail(ErrorCode::kUnavailable, "{}: the connection failed earlier", exchange.operation);
    const auto deadline = steady_clock::now() + timeout_;
    int peer = 0;  // the peer of the current call
    try {
      for (const Pending& message : exchange.messages) {
        peer = message.peer;
        WaitFor(message, deadline);
      }
    } catch (const gloo::Exception& error) {
      FailOperation(exchange.operation, peer, Reason(error));
    }
    std::vector<Pending>& oldest = retired_[next_retired_++ % retired_.size()];
    oldest.clear();
    oldest.swap(exchange.messages);
    exchange.operation = nullptr;
  }

  void Abandon() noexcept override {
    failed_ = true;
    context_->closeConnections();
  }

  void Broadcast(std::span<std::byte> data, int root) override {
    CHECK(root >= 0 && root < world_size());
    const bool is_root = root == rank();
    Wait(Start(
        "Broadcast",
        [&](size_t p) {
          return is_root && p != static_cast<size_t>(root) ? std::span<const std::byte>(data)
                                                           : std::span<const std::byte>();
        },
        [&](size_t p) {
          return !is_root && p == static_cast<size_t>(root) ? data : std::span<std::byte>();
        }));
  }

 private:
  // A message in flight.
  struct Pending {
    int peer;
    bool is_send;
    std::unique_ptr<UnboundBuffer> buffer;
  };
  struct InFlight {
    const char* operation = nullptr;  // null: free
    std::vector<Pending> messages;
  };

  size_t Size() const { return static_cast<size_t>(context_->size); }

  void JoinWithin(GlooStoreClient& client, const Rendezvous& rendezvous) {
    const auto deadline = steady_clock::now() + timeout_;
    while (!client.Join(rendezvous.rank, rendezvous.world_size)) {
      if (steady_clock::now() > deadline)
        Fail(ErrorCode::kUnavailable,
             "worker {} cannot reach worker 0 at {}:{} within {:.0f} s: check MASTER_ADDR, "
             "MASTER_PORT and that worker 0 is running",
             rendezvous.rank, rendezvous.master_addr, rendezvous.master_port,
             static_cast<double>(timeout_.count()) / 1000);
      std::this_thread::sleep_for(kPollInterval);
    }
    for (std::string missing = client.Missing(); !missing.empty(); missing = client.Missing()) {
      if (steady_clock::now() > deadline)
        Fail(ErrorCode::kUnavailable,
             "worker {} of {} did not connect to {}:{} within {:.0f} s: start all workers with the "
             "same MASTER_ADDR and MASTER_PORT",
             missing, rendezvous.world_size, rendezvous.master_addr, rendezvous.master_port,
             static_cast<double>(timeout_.count()) / 1000);
      std::this_thread::sleep_for(kPollInterval);
    }
  }

  void Connect(GlooStoreClient& client, const Rendezvous& rendezvous) {
    try {
      gloo::transport::tcp::attr attributes;
      attributes.iface = rendezvous.network_interface;
      if (attributes.iface.empty()) attributes.hostname = LocalAddressTowards(rendezvous);
      auto device = gloo::transport::tcp::CreateDevice(attributes);
      auto context =
          std::make_shared<gloo::rendezvous::Context>(rendezvous.rank, rendezvous.world_size);
      context->setTimeout(timeout_);
      Store store(client, timeout_);
      context->connectFullMesh(store, device);
      context_ = std::move(context);
    } catch (const gloo::Exception& error) {
      Fail(ErrorCode::kUnavailable,
           "worker {} cannot connect to the other workers: {}; if the hosts have several networks, "
           "set GLOO_SOCKET_IFNAME to the interface to use",
           rendezvous.rank, Reason(error));
    }
  }

  // One round of messages: send_part(p) goes to worker p, recv_part(p) comes from worker p; a part
  // that is empty on one side is empty on the other.
  template <class SendPart, class RecvPart>
  Ticket Start(const char* operation, const SendPart& send_part, const RecvPart& recv_part) {
    if (failed_) Fail(ErrorCode::kUnavailable, "{}: the connection failed earlier", operation);
    const auto free = std::find_if(in_flight_.begin(), in_flight_.end(),
                                   [](const InFlight& e) { return e.operation == nullptr; });
    const Ticket ticket = static_cast<Ticket>(free - in_flight_.begin());
    if (free == in_flight_.end()) in_flight_.emplace_back();
    InFlight& exchange = in_flight_[ticket];
    exchange.operation = operation;
    const uint64_t slot = next_slot_++;
    int peer = 0;  // the peer of the current call
    try {
      // Start with the next rank, so that workers do not all send to worker 0 first.
      for (size_t distance = 1; distance < Size(); ++distance) {
        const size_t p = (static_cast<size_t>(rank()) + Size() - distance) % Size();
        peer = static_cast<int>(p);
        Start(exchange.messages, peer, recv_part(p), slot);
      }
      for (size_t distance = 1; distance < Size(); ++distance) {
        const size_t p = (static_cast<size_t>(rank()) + distance) % Size();
        peer = static_cast<int>(p);
        Start(exchange.messages, peer, send_part(p), slot);
      }
    } catch (const gloo::Exception& error) {
      FailOperation(operation, peer, Reason(error));
    }
    const std::span<const std::byte> own = send_part(static_cast<size_t>(rank()));
    std::copy(own.begin(), own.end(), recv_part(static_cast<size_t>(rank())).begin());
    return ticket;
  }

  void Start(std::vector<Pending>& pending, int peer, std::span<std::byte> part, uint64_t slot) {
    if (part.empty()) return;
    pending.push_back({peer, false, context_->createUnboundBuffer(part.data(), part.size())});
    pending.back().buffer->recv(peer, slot);
  }

  void Start(std::vector<Pending>& pending, int peer, std::span<const std::byte> part,
             uint64_t slot) {
    if (part.empty()) return;
    auto* data = const_cast<std::byte*>(part.data());  // Gloo only reads a send buffer
    pending.push_back({peer, true, context_->createUnboundBuffer(data, part.size())});
    pending.back().buffer->send(peer, slot);
  }

  static void WaitFor(const Pending& message, steady_clock::time_point deadline) {
    const auto left = std::max(
        milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
    if (message.is_send)
      message.buffer->waitSend(left);
    else
      message.buffer->waitRecv(left);
  }

  // A failing worker closes its connections, which makes other workers fail: name all workers lost
  // so far; the one that failed first is among them.
  [[noreturn]] void FailOperation(const char* operation, int peer, const std::string& reason) {
    failed_ = true;
    std::vector<int> lost;
    // After a timeout Gloo closes all connections itself, so their state says nothing about the
    // other workers.
    const bool timed_out = reason.starts_with("Timed out");
    for (int p = 0; p < world_size(); ++p)
      if (p == peer || (p != rank() && !timed_out && IsLost(p))) lost.push_back(p);
    // Nothing may write to the caller's buffers after this.
    context_->closeConnections();
    if (timed_out)
      Fail(ErrorCode::kUnavailable,
           "{}: no answer from worker {} within {:.0f} s: the worker or the network hangs",
           operation, peer, static_cast<double>(timeout_.count()) / 1000);
    Fail(ErrorCode::kUnavailable, "{}: lost worker {}: {}", operation, JoinNumbers(lost), reason);
  }

  // Gloo rejects a new message on a failed connection.
  bool IsLost(int peer) {
    try {
      std::byte byte;
      context_->createUnboundBuffer(&byte, 1)->recv(peer, next_slot_++);
      return false;
    } catch (const gloo::Exception&) {
      return true;
    }
  }

  milliseconds timeout_;
  std::shared_ptr<gloo::Context> context_;
  uint64_t next_slot_ = 0;
  std::vector<InFlight> in_flight_;  // by ticket
  // Messages of the last exchanges. Gloo's thread releases a message a little after it has ended,
  // and freeing a buffer before that waits with sched_yield(): on a busy CPU, for the rest of
  // another process's time slice.
  std::array<std::vector<Pending>, 16> retired_;
  size_t next_retired_ = 0;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Communicator> MakeGlooCommunicator(const Rendezvous& rendezvous,
                                                   double timeout_seconds) {
  if (rendezvous.world_size == 1) return MakeLocalCommunicator();
  if (rendezvous.master_addr.empty())
    Fail(ErrorCode::kUsage,
         "backend gloo needs MASTER_ADDR (and MASTER_PORT): set them to the host of worker 0 and a "
         "free port there");
  return std::make_unique<GlooCommunicator>(rendezvous, timeout_seconds);
}

}  // namespace renzan
