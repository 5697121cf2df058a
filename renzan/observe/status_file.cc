#include "renzan/observe/status_file.h"

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {

void WriteStatusFile(const std::string& path, const RunStatus& status) {
  nlohmann::ordered_json out = {
      {"state", status.state},    {"step", status.step},
      {"steps", status.steps},    {"samples_per_second", status.samples_per_second},
      {"eta_seconds", nullptr},   {"last_checkpoint", nullptr},
      {"working_since", nullptr}, {"updated", status.updated_unix_seconds}};
  if (status.eta_seconds) out["eta_seconds"] = *status.eta_seconds;
  if (status.last_checkpoint)
    out["last_checkpoint"] = {{"step", status.last_checkpoint->step},
                              {"time", status.last_checkpoint->unix_seconds}};
  if (status.working_since_unix_seconds) out["working_since"] = *status.working_since_unix_seconds;
  WriteFileAtomically(path, out.dump(2) + "\n");
}

bool HasNoCheckpointYet(const std::string& path) {
  try {
    const auto status = nlohmann::json::parse(ReadFile(path));
    return status.at("state") != "done" && status.at("last_checkpoint").is_null();
  } catch (const nlohmann::json::exception&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace renzan
