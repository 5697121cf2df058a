#include "renzan/comm/outcome.h"

#include <cstring>

#include "renzan/comm/gather.h"

namespace renzan {
namespace {

constexpr int kSuccess = 0;

// The status (the Error's code, or kSuccess), then the result or the Error's message.
std::string Encode(const Outcome& outcome) {
  const int status = outcome.error ? outcome.error->exit_status() : kSuccess;
  return std::string(reinterpret_cast<const char*>(&status), sizeof(status)) +
         (outcome.error ? outcome.error->what() : outcome.result);
}

Outcome Decode(const std::string& bytes) {
  int status = kSuccess;
  CHECK(bytes.size() >= sizeof(status));
  std::memcpy(&status, bytes.data(), sizeof(status));
  std::string text = bytes.substr(sizeof(status));
  if (status == kSuccess) return {.error = std::nullopt, .result = std::move(text)};
  return {.error = Error(static_cast<ErrorCode>(status), text)};
}

}  // namespace

std::vector<Outcome> GatherOutcomes(Communicator& comm, const Outcome& mine) {
  std::vector<Outcome> outcomes;
  for (const std::string& bytes : GatherStrings(comm, Encode(mine)))
    outcomes.push_back(Decode(bytes));
  return outcomes;
}

Outcome BroadcastOutcome(Communicator& comm, const Outcome& mine) {
  return Decode(BroadcastString(comm, Encode(mine)));
}

}  // namespace renzan
