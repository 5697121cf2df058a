#pragma once

// Opens a saved model on all workers.

#include <string>

#include "renzan/checkpoint/reader.h"
#include "renzan/comm/communicator.h"

namespace renzan {

// `path`: see FindModel(). Rank 0 chooses for all, because the run may be writing a newer
// checkpoint right now; each worker reads its own files. Throws kConfig unless these are the same.
// Every rank calls it.
CheckpointReader OpenSameModel(const std::string& path, Communicator& comm);

}  // namespace renzan
