#include "renzan/comm/backends.h"

#include <cstring>

#include "renzan/base/error.h"

namespace renzan {
namespace {

class LocalCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  const char* backend() const override { return "local"; }

  Ticket Post(const char*, std::span<const std::span<const std::byte>> send,
              std::span<const std::span<std::byte>> recv) override {
    CHECK(send.size() == 1 && recv.size() == 1 && send[0].size() == recv[0].size());
    if (!send[0].empty()) std::memcpy(recv[0].data(), send[0].data(), send[0].size());
    return 0;
  }
  void Wait(Ticket) override {}
  void Abandon() noexcept override {}

  void Broadcast(std::span<std::byte>, int root) override { CHECK(root == 0); }
};

}  // namespace

std::unique_ptr<Communicator> MakeLocalCommunicator() {
  return std::make_unique<LocalCommunicator>();
}

std::unique_ptr<Communicator> MakeCommunicator(std::string_view backend,
                                               const Rendezvous& rendezvous, double timeout_seconds,
                                               const MakeFunction& make_mpi) {
  if (backend == "auto") {
    backend = rendezvous.world_size == 1 ? "local" : rendezvous.under_mpirun ? "mpi" : "gloo";
  }
  if (backend == "gloo") return MakeGlooCommunicator(rendezvous, timeout_seconds);
  if (backend == "mpi") return make_mpi(rendezvous, timeout_seconds);
  if (backend != "local")
    Fail(ErrorCode::kConfig, "unknown backend '{}': use auto, local, gloo or mpi", backend);
  if (rendezvous.world_size != 1)
    Fail(ErrorCode::kConfig,
         "backend 'local' runs a single worker, but {} were requested: use gloo or mpi",
         rendezvous.world_size);
  return MakeLocalCommunicator();
}

}  // namespace renzan
