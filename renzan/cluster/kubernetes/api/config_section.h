#pragma once

// The parts of a kubeconfig file, and the files beside it that they name. Everything throws Error
// kConfig, or kNoInput for a file that cannot be read, with the file and the key.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace YAML {
class Node;
}

namespace renzan::cluster::kubernetes {

// A map of the file and its location.
class Section {
 public:
  // `key`: of the map in the file; empty: it is the whole file.
  Section(const YAML::Node& node, std::string file, std::string key);

  const std::string& file() const { return file_; }
  // "FILE: KEY", for messages; without a key, of the section itself.
  std::string Where(const std::string& key = "") const;
  bool Has(const std::string& key) const;

  // "" if it is not set.
  std::string Text(const std::string& key) const;
  std::string Required(const std::string& key, const char* next) const;
  bool Flag(const std::string& key) const;

  // The section of this key; nothing if it is not set.
  std::optional<Section> Part(const std::string& key) const;
  // The section `part` of the entry called `name` in a list of {name, part}; nothing if there is no
  // such entry.
  std::optional<Section> Find(const std::string& list, const std::string& name,
                              const std::string& part) const;
  // Of an entry that the file refers to: fails with the names that exist.
  Section Follow(const std::string& list, const std::string& name, const std::string& part,
                 const std::string& referred_by) const;

  std::vector<std::string> Texts(const std::string& list) const;
  // Of a list of {name, value}.
  std::vector<std::pair<std::string, std::string>> NamedTexts(const std::string& list) const;
  nlohmann::json Json() const;

 private:
  std::vector<YAML::Node> Items(const std::string& list) const;
  std::vector<YAML::Node> Entries(const std::string& list) const;
  std::vector<std::string> Names(const std::string& list) const;

  std::shared_ptr<const YAML::Node> node_;
  std::string file_, key_;
};

// Reads a whole file. Throws YAML::Exception if it is not YAML.
Section ReadSections(const std::string& path);

// Authorities and credentials are a few KiB: larger files are refused.
std::string ReadSmallFile(const std::string& path);
// The same; `where` is what names the file.
std::string ReadNamedFile(const std::string& path, const std::string& where);
// A path in the file is relative to the file's folder. "" stays so.
std::string ResolvePath(const Section& section, const std::string& path);

struct Pem {
  std::string text = {};
  std::string where = {};
};
// From KEY-data or the file named by KEY; as for kubectl, the former wins.
Pem ReadPem(const Section& section, const std::string& key);

}  // namespace renzan::cluster::kubernetes
