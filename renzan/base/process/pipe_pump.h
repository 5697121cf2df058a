#pragma once

// Hands what arrives in pipes to their sinks, on a thread of its own, so that a slow sink does not
// delay the program. A process that writes faster than its sink takes is blocked, as if it wrote
// there itself. Not thread-safe.

#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "renzan/base/process/pipe.h"

namespace renzan {

class PipePump {
 public:
  // Called on the thread, with what has been read so far; never with nothing. Must not throw.
  using Sink = std::function<void(std::string_view piece)>;

  PipePump();
  // Calls Finish().
  ~PipePump();
  PipePump(const PipePump&) = delete;
  PipePump& operator=(const PipePump&) = delete;

  // Before Start(). Returns the pipe's write end, which the caller closes once the writer has it.
  // Throws Error kOsError.
  Descriptor Add(Sink sink);
  void Start();
  // Waits until the sinks have everything that is in the pipes. Call it when all writers have
  // ended.
  void Finish();

 private:
  struct Stream {
    Descriptor pipe;  // none: ended
    Sink sink;
  };

  void Run();
  // False if there is nothing to read now.
  bool Copy(Stream& stream);

  std::vector<Stream> streams_;
  std::vector<char> buffer_;
  Pipe wake_;  // closing the write end makes the thread finish
  std::thread thread_;
};

}  // namespace renzan
