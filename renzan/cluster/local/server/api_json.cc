#include "renzan/cluster/local/server/api_json.h"

#include <nlohmann/json.hpp>

namespace renzan::cluster::local {

std::string BodyOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json ParseBody(const ApiRequest& request) {
  Json body = Json::parse(request.body.empty() ? "{}" : request.body, nullptr, false);
  if (!body.is_object()) throw BadRequest("the body is not a JSON object");
  return body;
}

}  // namespace renzan::cluster::local
