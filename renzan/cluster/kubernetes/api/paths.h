#pragma once

// Paths of the API server.

#include <string>
#include <string_view>

#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

// "/apis/batch/v1/namespaces/NS/jobs", without the namespace if `ns` is empty.
std::string CollectionPath(const Kind& kind, const std::string& ns);

// "/api/v1/namespaces/NS/pods/NAME/binding". `name` must not be empty: the path would be that of
// the whole collection.
std::string ObjectPath(const Kind& kind, const std::string& ns, const std::string& name,
                       const std::string& subresource = "");

// Percent-encodes a part of a path or query.
std::string EscapeUrl(std::string_view text);

}  // namespace renzan::cluster::kubernetes
