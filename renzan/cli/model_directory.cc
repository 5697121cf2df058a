#include "renzan/cli/model_directory.h"

#include "renzan/base/error.h"
#include "renzan/base/file.h"

namespace renzan {

std::string ModelDirectory(const std::string& path) {
  if (FileExists(path + "/model/manifest.json")) return path + "/model";
  if (FileExists(path + "/metrics.jsonl"))
    Fail(ErrorCode::kData, "{} is a run that did not finish: there is no model in it", path);
  return path;
}

}  // namespace renzan
