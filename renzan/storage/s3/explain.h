#pragma once

// Explains a store's error answers and what to do about them. Pure functions.

#include <string>

#include "renzan/base/error.h"
#include "renzan/base/http/http.h"
#include "renzan/storage/s3/answers.h"
#include "renzan/storage/s3/location.h"
#include "renzan/storage/s3/settings.h"

namespace renzan::s3 {

// Whether the same request may succeed a moment later.
bool IsTransient(int status, const std::string& code);
// Whether other credentials would help.
bool RefusesCredentials(int status, const std::string& code);

struct Refused {
  std::string method;
  Location location;
  std::string credentials_origin;
  double now_unix_seconds = 0;
};
Error Explain(const Refused& request, const HttpAnswer& answer, const Settings& settings);

}  // namespace renzan::s3
