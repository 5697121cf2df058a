#include "renzan/cluster/kubernetes/api/kube_config.h"

#include <openssl/evp.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/certificates.h"

namespace renzan::cluster::kubernetes {
namespace {

// Authorities and credentials are a few KiB.
constexpr uint64_t kMaxFileBytes = 16 << 20;

// A map of the file and its location.
class Section {
 public:
  Section(YAML::Node node, std::string file, std::string key)
      : node_(std::move(node)), file_(std::move(file)), key_(std::move(key)) {
    if (!node_.IsMap())
      Fail(ErrorCode::kConfig, "{}: {} is not a section with keys: correct the file", file_,
           key_.empty() ? "the file" : key_);
  }

  const std::string& file() const { return file_; }
  std::string Where(const std::string& key) const {
    return fmt::format("{}: {}{}{}", file_, key_, key_.empty() ? "" : ".", key);
  }
  bool Has(const std::string& key) const { return node_[key] && !node_[key].IsNull(); }

  // "" if it is not set.
  std::string Text(const std::string& key) const {
    if (!Has(key)) return "";
    if (!node_[key].IsScalar())
      Fail(ErrorCode::kConfig, "{}: must be a single value: correct the file", Where(key));
    return node_[key].Scalar();
  }

  std::string Required(const std::string& key, const char* next) const {
    std::string text = Text(key);
    if (text.empty()) Fail(ErrorCode::kConfig, "{}: is not set: {}", Where(key), next);
    return text;
  }

  bool Flag(const std::string& key) const {
    const std::string text = Text(key);
    if (!text.empty() && text != "true" && text != "false")
      Fail(ErrorCode::kConfig, "{}: '{}' is neither true nor false: correct the file", Where(key),
           text);
    return text == "true";
  }

  // The section `part` of the entry called `name` in a list of {name, part}; nothing if there is no
  // such entry.
  std::optional<Section> Find(const std::string& list, const std::string& name,
                              const std::string& part) const {
    for (const YAML::Node& entry : Entries(list))
      if (entry["name"].as<std::string>("") == name)
        return Section(entry[part] ? entry[part] : YAML::Node(YAML::NodeType::Null), file_,
                       fmt::format("{}.{}.{}", list, name, part));
    return std::nullopt;
  }

  std::vector<std::string> Names(const std::string& list) const {
    std::vector<std::string> names;
    for (const YAML::Node& entry : Entries(list))
      names.push_back(entry["name"].as<std::string>(""));
    return names;
  }

 private:
  std::vector<YAML::Node> Entries(const std::string& list) const {
    std::vector<YAML::Node> entries;
    if (!Has(list)) return entries;
    if (!node_[list].IsSequence())
      Fail(ErrorCode::kConfig, "{}: must be a list: correct the file", Where(list));
    for (const YAML::Node& entry : node_[list]) {
      if (!entry.IsMap())
        Fail(ErrorCode::kConfig, "{}: every entry must have a name: correct the file", Where(list));
      entries.push_back(entry);
    }
    return entries;
  }

  YAML::Node node_;
  std::string file_, key_;
};

// An entry that the file refers to: fails with the names that exist.
Section Follow(const Section& root, const std::string& list, const std::string& name,
               const std::string& part, const std::string& referred_by) {
  if (auto found = root.Find(list, name, part)) return *std::move(found);
  const std::vector<std::string> names = root.Names(list);
  const std::string nearest = NearestName(name, names);
  Fail(ErrorCode::kConfig, "{}: there is no '{}' in {}: {}", referred_by, name, root.Where(list),
       !nearest.empty() ? fmt::format("did you mean '{}'?", nearest)
       : names.empty()  ? std::string("the list is empty: is it the right file?")
                        : fmt::format("it has {}", fmt::join(names, ", ")));
}

std::string DecodeBase64(std::string text, const std::string& where) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = text.size() % 4 != 0
                       ? -1
                       : EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                         reinterpret_cast<const unsigned char*>(text.data()),
                                         static_cast<int>(text.size()));
  if (size < 0)
    Fail(ErrorCode::kConfig, "{}: is not valid base64: copy the configuration again", where);
  // OpenSSL counts the padding as bytes.
  for (size_t i = text.size(); i > 0 && text[i - 1] == '='; --i) bytes.pop_back();
  return bytes;
}

std::string ReadSmallFile(const std::string& path) {
  if (FileSize(path) > kMaxFileBytes)
    Fail(ErrorCode::kConfig, "{}: larger than {} bytes: is it the right file?", path,
         kMaxFileBytes);
  return ReadFile(path);
}

std::string ReadNamedFile(const std::string& path, const std::string& where) {
  try {
    return ReadSmallFile(path);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}: make the file readable, or correct its name",
                                          where, error.what()));
  }
}

std::string ResolvePath(const Section& section, const std::string& path) {
  if (path.empty()) return "";
  return std::filesystem::path(section.file()).parent_path() / path;
}

struct Pem {
  std::string text = {};
  std::string where = {};
};

// From KEY-data or the file named by KEY; as for kubectl, the former wins.
Pem ReadPem(const Section& section, const std::string& key) {
  const std::string data_key = key + "-data";
  if (const std::string data = section.Text(data_key); !data.empty()) {
    const std::string where = section.Where(data_key);
    return {DecodeBase64(data, where), where};
  }
  const std::string path = ResolvePath(section, section.Text(key));
  if (path.empty()) return {};
  const std::string where = section.Where(key);
  return {ReadNamedFile(path, where), fmt::format("{} ({})", where, path)};
}

bool IsLoopback(const std::string& server) {
  for (const char* host : {"127.0.0.1", "localhost", "[::1]"}) {
    const std::string start = std::string("http://") + host;
    if (server.starts_with(start) && (server.size() == start.size() ||
                                      server[start.size()] == ':' || server[start.size()] == '/'))
      return true;
  }
  return false;
}

void TakeCluster(const Section& cluster, Access& access) {
  access.server = cluster.Required("server", "set it to https://HOST:PORT");
  while (access.server.ends_with('/')) access.server.pop_back();
  if (!access.server.starts_with("https://") && !access.server.starts_with("http://"))
    Fail(ErrorCode::kConfig, "{}: '{}' is not an address: expected https://HOST:PORT",
         cluster.Where("server"), access.server);
  access.tls_server_name = cluster.Text("tls-server-name");
  access.proxy_url = cluster.Text("proxy-url");
  access.verify_server = !cluster.Flag("insecure-skip-tls-verify");
  const Pem authorities = ReadPem(cluster, "certificate-authority");
  if (!authorities.where.empty()) {
    if (!access.verify_server)
      Fail(ErrorCode::kConfig,
           "{}: contradicts certificate-authority: remove it, so that the server is verified",
           cluster.Where("insecure-skip-tls-verify"));
    CheckAuthorities(authorities.text, authorities.where);
  }
  access.ca_pem = authorities.text;
}

// What this client does not support.
void RefusePlugins(const Section& user) {
  constexpr const char* kInstead =
      "put a token or a client certificate of a service account with the rights of renzan into the "
      "file (`kubectl create token`), or run in a pod with that service account";
  for (const char* plugin : {"exec", "auth-provider"})
    if (user.Has(plugin))
      Fail(ErrorCode::kConfig, "{}: programs that provide credentials are not supported: {}",
           user.Where(plugin), kInstead);
  for (const char* password : {"username", "password"})
    if (user.Has(password))
      Fail(ErrorCode::kConfig, "{}: API servers since 1.19 do not accept passwords: {}",
           user.Where(password), kInstead);
  if (user.Has("as"))
    Fail(ErrorCode::kConfig, "{}: impersonation is not supported: {}", user.Where("as"), kInstead);
}

void TakeUser(const Section& user, const Clock& clock, Access& access) {
  RefusePlugins(user);
  access.token = user.Text("token");
  access.token_file = ResolvePath(user, user.Text("tokenFile"));
  if (!access.token_file.empty() && access.token.empty())
    ReadNamedFile(access.token_file, user.Where("tokenFile"));
  const Pem certificate = ReadPem(user, "client-certificate");
  const Pem key = ReadPem(user, "client-key");
  if (certificate.where.empty() != key.where.empty())
    Fail(ErrorCode::kConfig, "{}: is not set, but {} is: set both or neither",
         user.Where(key.where.empty() ? "client-key" : "client-certificate"),
         key.where.empty() ? "client-certificate" : "client-key");
  if (!certificate.where.empty())
    CheckClientCertificate(certificate.text, certificate.where, key.text, key.where,
                           clock.UnixSeconds());
  access.client_certificate_pem = certificate.text;
  access.client_key_pem = key.text;
}

Access ReadKubeConfig(const std::string& path, const std::string& wanted, const Clock& clock) {
  const Section root(YAML::Load(ReadSmallFile(path)), path, "");
  std::string name = wanted;
  if (name.empty())
    name = root.Required("current-context",
                         "name a context, or set one with `kubectl config use-context`");
  const Section context =
      Follow(root, "contexts", name, "context",
             wanted.empty() ? root.Where("current-context") : "the context asked for");
  Access access{.from = fmt::format("{}, context {}", path, name), .server = ""};
  if (const std::string ns = context.Text("namespace"); !ns.empty()) access.default_namespace = ns;
  const std::string cluster = context.Required("cluster", "name one of clusters");
  TakeCluster(Follow(root, "clusters", cluster, "cluster", context.Where("cluster")), access);
  if (const std::string user = context.Text("user"); !user.empty())
    TakeUser(Follow(root, "users", user, "user", context.Where("user")), clock, access);
  if (access.server.starts_with("http://") && !IsLoopback(access.server) &&
      (!access.token.empty() || !access.token_file.empty()))
    Fail(ErrorCode::kConfig, "{}: {} would send the user's token unencrypted: use https://",
         root.Where("clusters." + cluster + ".cluster.server"), access.server);
  return access;
}

Access ReadPod(const AccessRequest& request, const std::string& host) {
  const char* const port = request.environment("KUBERNETES_SERVICE_PORT");
  Access access{.from = "this pod's service account", .server = ""};
  const bool ipv6 = host.find(':') != std::string::npos;
  access.server =
      fmt::format("https://{}:{}", ipv6 ? "[" + host + "]" : host, port == nullptr ? "443" : port);
  const auto read = [&](const char* name) {
    const std::string path = request.pod_directory + "/" + name;
    try {
      return ReadSmallFile(path);
    } catch (const Error& error) {
      Fail(ErrorCode::kNoInput,
           "{}: this pod has no service account: set automountServiceAccountToken to true and "
           "serviceAccountName to one with the rights of renzan",
           error.what());
    }
  };
  access.token_file = request.pod_directory + "/token";
  read("token");
  access.ca_pem = read("ca.crt");
  CheckAuthorities(access.ca_pem, request.pod_directory + "/ca.crt");
  if (const std::string ns_file = request.pod_directory + "/namespace"; FileExists(ns_file)) {
    access.default_namespace = ReadSmallFile(ns_file);
    while (access.default_namespace.ends_with('\n')) access.default_namespace.pop_back();
  }
  return access;
}

std::string Variable(const AccessRequest& request, const char* name) {
  const char* const value = request.environment ? request.environment(name) : nullptr;
  return value == nullptr ? "" : value;
}

// The kubeconfig file to read; empty if there is none.
std::string FindFile(const AccessRequest& request) {
  if (!request.path.empty()) {
    if (!IsMissing(request.path)) return request.path;
    Fail(ErrorCode::kNoInput,
         "--kubeconfig: there is no file {}: name one that exists, or leave the option out to use "
         "$KUBECONFIG, ~/.kube/config, or a pod's service account",
         request.path);
  }
  const std::string list = Variable(request, "KUBECONFIG");
  for (size_t start = 0; start < list.size();) {
    const size_t end = std::min(list.find(':', start), list.size());
    const std::string path = list.substr(start, end - start);
    if (!path.empty() && !IsMissing(path)) return path;
    start = end + 1;
  }
  if (!list.empty())
    Fail(ErrorCode::kNoInput,
         "$KUBECONFIG: there is no file {}: correct the variable, or unset it to use "
         "~/.kube/config",
         list);
  const std::string home = Variable(request, "HOME");
  const std::string path = home + "/.kube/config";
  return home.empty() || IsMissing(path) ? "" : path;
}

}  // namespace

Access FindAccess(const AccessRequest& request, const Clock& clock) {
  const std::string path = FindFile(request);
  if (path.empty()) {
    const std::string host = Variable(request, "KUBERNETES_SERVICE_HOST");
    if (!host.empty() && request.context.empty()) return ReadPod(request, host);
    Fail(
        ErrorCode::kNoInput,
        "no Kubernetes configuration: there is no ~/.kube/config{}: set KUBECONFIG to a kubeconfig "
        "file{}",
        host.empty() ? ", and this is not a pod" : ", and a pod has no contexts",
        request.what_else.empty() ? "" : ", or " + request.what_else);
  }
  try {
    return ReadKubeConfig(path, request.context, clock);
  } catch (const YAML::Exception& error) {
    Fail(ErrorCode::kConfig, "{}:{}:{}: {}: correct the file", path, error.mark.line + 1,
         error.mark.column + 1, error.msg);
  }
}

}  // namespace renzan::cluster::kubernetes
