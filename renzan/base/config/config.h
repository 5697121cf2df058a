#pragma once

// Configuration files with a strict schema. A struct describes its fields once; reading a YAML
// file, applying `--set key=value` overrides and printing and comparing resolved configurations
// all use that description:
//
//   struct TrainConfig {
//     int64_t batch_size = 2048;
//     NumericsConfig numerics;
//     void Describe(ConfigFields& fields) {
//       fields.Range("batch_size", &batch_size, 1, 1 << 20, "samples per step");
//       fields.Section("numerics", &numerics);
//       fields.Require(batch_size % numerics.virtual_workers == 0, "batch_size",
//                      "must be a multiple of numerics.virtual_workers");
//     }
//   };
//
// Fields that the file does not mention keep their values. An unknown key, a duplicate key, a wrong
// type, an invalid value or a broken rule is an Error kConfig that starts with the location
// ("config.yaml:12:5: ..." or "--set numerics.isa=avx9: ...") and names the nearest valid word.
// Values follow YAML 1.2: whole numbers in decimal, true/false, .inf. Not thread-safe.

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace renzan {

class ConfigFields {
 public:
  using Value =
      std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::vector<int>*,
                   std::vector<int64_t>*, std::vector<double>*, std::vector<std::string>*,
                   std::map<std::string, std::string>*, std::map<std::string, int64_t>*,
                   std::optional<int>*, std::optional<std::vector<std::string>>*>;
  using Describer = std::function<void(ConfigFields&)>;
  template <typename T>
  using ItemDescriber = std::function<void(ConfigFields&, T&)>;

  virtual ~ConfigFields() = default;

  // Tags all values declared after this in the same section, and those of its nested sections that
  // set no tag of their own. The owner of the schema gives the number its meaning; ListConfig()
  // returns it with each value.
  template <typename Meaning>
  void Tag(Meaning tag) {
    tag_ = static_cast<int>(tag);
  }

  // A value of any of the types above. `doc` is one line, printed as a comment. A list in the file
  // replaces the list in `value`; the entries of a map are added to it, as in Map(). An optional
  // value is none as null (~).
  void Field(const char* key, Value value, const char* doc = "") { Bind(key, value, nullptr, doc); }

  // One of the `allowed` words.
  void Choice(const char* key, std::string* value, const std::vector<std::string>& allowed,
              const char* doc = "");

  // A number in [min, max]. NaN is never in range.
  template <typename T>
  void Range(const char* key, T* value, std::type_identity_t<T> min, std::type_identity_t<T> max,
             const char* doc = "") {
    Bind(
        key, value,
        [=]() -> std::string {
          if (*value >= min && *value <= max) return "";
          return fmt::format("{} is out of range: {} must be between {} and {}", *value, key, min,
                             max);
        },
        doc);
  }

  // A nested section under `key`.
  virtual void Section(const char* key, const Describer& describe, const char* doc = "") = 0;
  template <typename T>
  requires requires(T& section, ConfigFields& fields) { section.Describe(fields); }
  void Section(const char* key, T* section, const char* doc = "") {
    Section(key, Describer([section](ConfigFields& fields) { section->Describe(fields); }), doc);
  }

  // Sections whose names the user chooses (per-table settings). Names in the file are added to
  // those already in `values`.
  template <typename T>
  void Map(const char* key, std::map<std::string, T>* values,
           const std::type_identity_t<ItemDescriber<T>>& describe, const char* doc = "") {
    std::vector<std::string> names;
    for (const auto& [name, value] : *values) names.push_back(name);
    BindMap(
        key, names,
        [&](const std::string& name, ConfigFields& fields) { describe(fields, (*values)[name]); },
        doc);
  }
  template <typename T>
  requires requires(T& item, ConfigFields& fields) { item.Describe(fields); }
  void Map(const char* key, std::map<std::string, T>* values, const char* doc = "") {
    Map<T>(
        key, values, [](ConfigFields& fields, T& item) { item.Describe(fields); }, doc);
  }

  // Where the section is stated, for messages about it once all is read: the place of its key
  // ("config.yaml:12:5"), or the last override of it or of something in it. "" when printing, and
  // of what neither states.
  virtual std::string Where() const { return ""; }

  // Whether the file has the section, but nothing below it. Not when printing.
  virtual bool IsEmptySection(const char* /*key*/) const { return false; }

  // A rule beyond one value's type and range; `key` is the field that the message is about. Does
  // nothing when printing. The error is thrown only after everything is read: if a key is misspelt,
  // that explains more than the rule that its default breaks.
  void Require(bool condition, const char* key, const std::string& message) {
    RequireAt("", condition, key, message);
  }
  // The same with the location that the message begins with; "": that of `key`.
  virtual void RequireAt(const std::string& where, bool condition, const char* key,
                         const std::string& message) = 0;

 protected:
  // Returns what is wrong with the value just read, or "".
  using Check = std::function<std::string()>;
  using NamedDescriber = std::function<void(const std::string& name, ConfigFields&)>;

  virtual void Bind(const char* key, Value value, const Check& check, const char* doc) = 0;
  virtual void BindMap(const char* key, const std::vector<std::string>& names,
                       const NamedDescriber& describe, const char* doc) = 0;

  int tag_ = 0;
};

// Reads `path`, then applies `overrides` ("numerics.isa=avx2", the value being YAML) in order.
void ReadConfigFile(const std::string& path, std::span<const std::string> overrides,
                    const ConfigFields::Describer& describe);

// The same for a string; messages call it `name`. An empty string means all defaults.
void ReadConfigText(std::string_view yaml, const std::string& name,
                    std::span<const std::string> overrides,
                    const ConfigFields::Describer& describe);

// All values in the order in which they were declared, as YAML that reads back to the same values.
std::string PrintConfig(const ConfigFields::Describer& describe, bool with_docs = false);

// One of these values.
struct ConfigValue {
  std::vector<std::string> path;  // {"model", "tables", "C1", "pooling"}
  std::string text;               // as printed: "mean"
  int tag = 0;                    // ConfigFields::Tag

  // "model.tables.C1.pooling"; the user's names are quoted where they must be in YAML.
  std::string key() const;
};

// The same values one by one.
std::vector<ConfigValue> ListConfig(const ConfigFields::Describer& describe);

// The candidate that `word` is probably a typo of, or "" if none is close.
std::string NearestName(std::string_view word, std::span<const std::string> candidates);

}  // namespace renzan
