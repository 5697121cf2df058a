#include "renzan/cli/machine/kubernetes.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "renzan/base/file/file.h"
#include "renzan/base/http/http.h"

namespace renzan {
namespace {

constexpr double kTimeoutSeconds = 5;
constexpr const char* kPodAuthority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

std::string DecodeBase64(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  if (size < 0) return "";
  bytes.resize(static_cast<size_t>(size));
  // OpenSSL counts the padding as bytes.
  for (size_t i = text.size(); i > 0 && text[i - 1] == '='; --i) bytes.pop_back();
  return bytes;
}

// The `part` of the entry of `list` with this `name`.
YAML::Node Named(const YAML::Node& list, const std::string& name, const char* part) {
  for (const YAML::Node& entry : list)
    if (entry["name"].as<std::string>("") == name) return entry[part];
  return YAML::Node(YAML::NodeType::Undefined);
}

void TakeCluster(const YAML::Node& config, KubernetesServer& server) {
  const auto name = config["current-context"].as<std::string>("");
  if (name.empty()) {
    server.error = "no current-context is set: set one with `kubectl config use-context`";
    return;
  }
  const YAML::Node context = Named(config["contexts"], name, "context");
  const auto cluster_name = context ? context["cluster"].as<std::string>("") : "";
  const YAML::Node cluster = Named(config["clusters"], cluster_name, "cluster");
  if (cluster) server.url = cluster["server"].as<std::string>("");
  if (server.url.empty()) {
    server.error = fmt::format("context {} does not name a cluster with a server", name);
    return;
  }
  server.verify = !cluster["insecure-skip-tls-verify"].as<bool>(false);
  server.ca_pem = DecodeBase64(cluster["certificate-authority-data"].as<std::string>(""));
  if (const auto file = cluster["certificate-authority"].as<std::string>(""); !file.empty())
    server.ca_file = std::filesystem::path(server.configured_in).parent_path() / file;
}

KubernetesServer ReadKubeConfig(const std::string& path) {
  KubernetesServer server{.configured_in = path};
  try {
    TakeCluster(YAML::Load(ReadFile(path)), server);
  } catch (const std::exception& error) {  // from YAML or from reading
    server.error = error.what();
  }
  return server;
}

// Returns "" if the server answered, otherwise the reason why not.
std::string Ask(const KubernetesServer& server, std::string& body) {
  std::string url = server.url;
  while (url.ends_with('/')) url.pop_back();
  try {
    body = Http(server.ca_file)
               .Send({.method = "GET",
                      .url = url + "/version",
                      .timeout_seconds = kTimeoutSeconds,
                      .ca_pem = server.ca_pem,
                      .verify_server = server.verify})
               .body;
    return "";
  } catch (const HttpFailure& failure) {
    return failure.what;
  }
}

}  // namespace

std::optional<KubernetesServer> FindKubernetesServer(
    const std::function<const char*(const char*)>& environment) {
  const auto value = [&](const char* name) {
    const char* text = environment(name);
    return std::string(text == nullptr ? "" : text);
  };
  std::string files = value("KUBECONFIG");
  if (files.empty() && !value("HOME").empty()) files = value("HOME") + "/.kube/config";
  std::istringstream list(files);
  for (std::string file; std::getline(list, file, ':');)
    if (!file.empty() && FileExists(file)) return ReadKubeConfig(file);
  const std::string host = value("KUBERNETES_SERVICE_HOST");
  if (host.empty()) return std::nullopt;
  const std::string port = value("KUBERNETES_SERVICE_PORT");
  return KubernetesServer{
      .configured_in = "this pod",
      .url = fmt::format("https://{}:{}",
                         host.find(':') == std::string::npos ? host : "[" + host + "]",
                         port.empty() ? "443" : port),
      .error = {},
      .ca_file = FileExists(kPodAuthority) ? kPodAuthority : "",
      .ca_pem = {}};
}

Finding FindKubernetes(const std::optional<KubernetesServer>& server) {
  Finding finding{.name = "Kubernetes"};
  if (!server) {
    finding.state = Finding::State::kMissing;
    finding.here = "not configured (no kubeconfig)";
    finding.advice = "nothing: `renzan cluster up` does not need Kubernetes";
    return finding;
  }
  std::string body;
  const std::string error = server->error.empty() ? Ask(*server, body) : server->error;
  finding.here = server->url.empty() ? server->configured_in : server->url;
  if (!error.empty()) {
    finding.state = Finding::State::kMissing;
    finding.here += fmt::format(": {}", error);
    finding.advice = fmt::format("check {}; Renzan does not need it", server->configured_in);
    return finding;
  }
  const auto answer = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  std::string version;
  if (answer.is_object() && answer.contains("gitVersion") && answer["gitVersion"].is_string())
    version = answer["gitVersion"];
  finding.here += version.empty() ? " answers" : fmt::format(" answers ({})", version);
  return finding;
}

}  // namespace renzan
