#include "renzan/cluster/kubernetes/api/paths.h"

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {

std::string CollectionPath(const Kind& kind, const std::string& ns) {
  std::string path = kind.group.empty() ? "/api/" : "/apis/" + kind.group + "/";
  path += kind.version;
  if (!ns.empty()) path += "/namespaces/" + EscapeUrl(ns);
  return path + "/" + kind.plural;
}

std::string ObjectPath(const Kind& kind, const std::string& ns, const std::string& name,
                       const std::string& subresource) {
  CHECK_MSG(!name.empty(), "a request for one of {} without its name", kind.plural);
  std::string path = CollectionPath(kind, ns) + "/" + EscapeUrl(name);
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

std::string EscapeUrl(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

}  // namespace renzan::cluster::kubernetes
