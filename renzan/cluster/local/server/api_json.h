#pragma once

// JSON of requests and responses, for the .cc files of the API. Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "renzan/cluster/local/server/api.h"

namespace renzan::cluster::local {

using Json = nlohmann::ordered_json;

// One line. Bytes that are not UTF-8 become U+FFFD.
std::string BodyOf(const Json& json);

// An object; {} for an empty body. Throws BadRequest for anything else.
Json ParseBody(const ApiRequest& request);

}  // namespace renzan::cluster::local
