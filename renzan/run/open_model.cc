#include "renzan/run/open_model.h"

#include <optional>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/run/agreement.h"
#include "renzan/saving/model_directory.h"

namespace renzan {

CheckpointReader OpenSameModel(const std::string& path, Communicator& comm) {
  ModelPlace place;
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() == 0) place = FindModel(path);
  });
  if (!place.note.empty()) LogInfo("{}", place.note);
  const std::string dir = BroadcastString(comm, place.dir);
  std::optional<CheckpointReader> reader;
  RunWithHeartbeats(comm, [&] { reader.emplace(dir); });
  CheckWorkersAgree(comm, "model in " + dir, reader->manifest().manifest_sha256.substr(0, 12),
                    "give every worker the same model");
  return std::move(*reader);
}

}  // namespace renzan
