#include "renzan/cluster/kubernetes/api/kube_config.h"

#include <yaml-cpp/yaml.h>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/certificates.h"
#include "renzan/cluster/kubernetes/api/config_section.h"
#include "renzan/cluster/kubernetes/api/exec_credentials.h"
#include "renzan/cluster/kubernetes/api/kube_exec.h"

namespace renzan::cluster::kubernetes {
namespace {

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
void RefuseOthers(const Section& user) {
  constexpr const char* kInstead =
      "use a program for credentials (`exec`), or put a token or a client certificate of a service "
      "account with the rights of renzan into the file (`kubectl create token`)";
  if (user.Has("auth-provider"))
    Fail(ErrorCode::kConfig,
         "{}: Kubernetes has had no such providers since 1.26: write the configuration again with "
         "the cloud's current tool, which uses `exec` (`gcloud container clusters "
         "get-credentials`, `kubelogin convert-kubeconfig`), or put in a token",
         user.Where("auth-provider"));
  for (const char* password : {"username", "password"})
    if (user.Has(password))
      Fail(ErrorCode::kConfig, "{}: API servers since 1.19 do not accept passwords: {}",
           user.Where(password), kInstead);
  if (user.Has("as"))
    Fail(ErrorCode::kConfig, "{}: impersonation is not supported: {}", user.Where("as"), kInstead);
}

void TakeUser(const Section& user, const Section& cluster, const ExecSurroundings& surroundings,
              const Clock& clock, Access& access) {
  RefuseOthers(user);
  access.token = user.Text("token");
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
  if (const std::string file = ResolvePath(user, user.Text("tokenFile")); !file.empty()) {
    if (access.token.empty()) ReadNamedFile(file, user.Where("tokenFile"));
    access.credentials = MakeTokenFile(file, access.token, access.from, clock);
    access.credentials->Get({});  // it may vanish from now on
  }
  // As for kubectl, the others win.
  const auto exec = user.Part("exec");
  if (exec && access.token.empty() && !access.credentials && certificate.where.empty())
    access.credentials = MakeExecCredentials(ReadExec(*exec, cluster, access), surroundings, clock);
}

Access ReadKubeConfig(const std::string& path, const AccessRequest& request, const Clock& clock) {
  const Section root = ReadSections(path);
  const std::string& wanted = request.context;
  std::string name = wanted;
  if (name.empty())
    name = root.Required("current-context",
                         "name a context, or set one with `kubectl config use-context`");
  const Section context =
      root.Follow("contexts", name, "context",
                  wanted.empty() ? root.Where("current-context") : "the context asked for");
  Access access{.from = fmt::format("{}, context {}", path, name), .server = ""};
  if (const std::string ns = context.Text("namespace"); !ns.empty()) access.default_namespace = ns;
  const Section cluster =
      root.Follow("clusters", context.Required("cluster", "name one of clusters"), "cluster",
                  context.Where("cluster"));
  TakeCluster(cluster, access);
  if (const std::string user = context.Text("user"); !user.empty())
    TakeUser(root.Follow("users", user, "user", context.Where("user")), cluster,
             request.surroundings, clock, access);
  if (access.server.starts_with("http://") && !IsLoopback(access.server) &&
      (!access.token.empty() || access.credentials))
    Fail(ErrorCode::kConfig, "{}: {} would send the user's token unencrypted: use https://",
         cluster.Where("server"), access.server);
  return access;
}

Access ReadPod(const AccessRequest& request, const std::string& host, const Clock& clock) {
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
  read("token");
  access.credentials = MakeTokenFile(request.pod_directory + "/token", "", access.from, clock);
  access.credentials->Get({});  // it may vanish from now on
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
    if (!host.empty() && request.context.empty()) return ReadPod(request, host, clock);
    Fail(
        ErrorCode::kNoInput,
        "no Kubernetes configuration: there is no ~/.kube/config{}: set KUBECONFIG to a kubeconfig "
        "file{}",
        host.empty() ? ", and this is not a pod" : ", and a pod has no contexts",
        request.what_else.empty() ? "" : ", or " + request.what_else);
  }
  try {
    return ReadKubeConfig(path, request, clock);
  } catch (const YAML::Exception& error) {
    Fail(ErrorCode::kConfig, "{}:{}:{}: {}: correct the file", path, error.mark.line + 1,
         error.mark.column + 1, error.msg);
  }
}

}  // namespace renzan::cluster::kubernetes
