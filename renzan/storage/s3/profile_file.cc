#include "renzan/storage/s3/profile_file.h"

#include <optional>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"

namespace renzan::s3 {
namespace {

constexpr std::string_view kSpaces = " \t\r";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

bool IsComment(std::string_view text) { return text.starts_with('#') || text.starts_with(';'); }

// Cuts off a comment, which begins after a space.
std::string_view WithoutComment(std::string_view text) {
  for (size_t i = 0; i + 1 < text.size(); ++i)
    if ((text[i] == ' ' || text[i] == '\t') && IsComment(text.substr(i + 1)))
      return Trimmed(text.substr(0, i));
  return text;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string_view WithoutQuotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '"' || text.front() == '\'');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

class Parser {
 public:
  Parser(const std::string& path, ProfileFileKind kind) : kind_(kind) { file_.path = path; }

  ProfileFile Parse(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      ++line_;
      ParseLine(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return std::move(file_);
  }

 private:
  void ParseLine(std::string_view line) {
    const std::string_view content = Trimmed(line);
    if (content.empty() || IsComment(content)) return;
    const bool indented = line.front() == ' ' || line.front() == '\t';
    if (content.front() == '[' && !indented) {
      ParseSection(content);
    } else if (is_skipped_) {
      return;
    } else if (profile_ == nullptr) {
      FailHere("a value before the first [section]: add one above it, such as [default]");
    } else if (!indented) {
      ParseValue(content);
    } else if (!below_empty_value_) {
      FailHere("begins with a space, as only lines below a `key =` without a value may: remove it");
    }
  }

  void ParseSection(std::string_view content) {
    const size_t end = content.find(']');
    if (end == std::string_view::npos) FailHere("a section without ']': write [name]");
    const std::string_view rest = Trimmed(content.substr(end + 1));
    if (!rest.empty() && !IsComment(rest)) FailHere("more text after ']': remove it");
    below_empty_value_ = false;
    profile_ = nullptr;
    const std::optional<std::string> name = ProfileName(Trimmed(content.substr(1, end - 1)));
    is_skipped_ = !name;
    if (is_skipped_) return;
    if (name->empty()) FailHere("a section without a name: write [name]");
    const auto [first, is_new] = section_lines_.emplace(*name, line_);
    if (!is_new)
      FailHere(fmt::format("profile '{}' is in line {} too: remove one of them, or move its values",
                           Escape(*name), first->second));
    profile_ = &file_.profiles[*name];
  }

  // Nothing if the section is not a profile.
  std::optional<std::string> ProfileName(std::string_view section) const {
    if (kind_ == ProfileFileKind::kCredentials || section == "default" || section.empty())
      return std::string(section);
    constexpr std::string_view kPrefix = "profile";
    if (section == kPrefix) return "";
    if (!section.starts_with(kPrefix) ||
        kSpaces.find(section[kPrefix.size()]) == std::string_view::npos)
      return std::nullopt;
    return std::string(WithoutQuotes(Trimmed(section.substr(kPrefix.size()))));
  }

  void ParseValue(std::string_view content) {
    const size_t equals = content.find('=');
    if (equals == std::string_view::npos) FailHere("neither `key = value` nor a [section]");
    const std::string key = LowerCase(Trimmed(content.substr(0, equals)));
    if (key.empty()) FailHere("a value without a key: write `key = value`");
    // Starting at the '=', so that a comment is found even where there is no value.
    const std::string_view text = Trimmed(WithoutComment(content.substr(equals)).substr(1));
    below_empty_value_ = text.empty();
    if (text.empty()) return;
    const auto [first, is_new] =
        profile_->emplace(key, ProfileFile::Value{.text = std::string(text), .line = line_});
    if (!is_new)
      FailHere(fmt::format("'{}' is in line {} too: remove one of them", Escape(key),
                           first->second.line));
  }

  [[noreturn]] void FailHere(std::string_view what) const {
    Fail(ErrorCode::kConfig, "{}:{}: {}", file_.path, line_, what);
  }

  const ProfileFileKind kind_;
  ProfileFile file_;
  std::map<std::string, int> section_lines_;
  ProfileFile::Profile* profile_ = nullptr;
  bool is_skipped_ = false;
  bool below_empty_value_ = false;
  int line_ = 0;
};

}  // namespace

const ProfileFile::Value* ProfileFile::Find(const std::string& profile,
                                            const std::string& key) const {
  const auto found = profiles.find(profile);
  if (found == profiles.end()) return nullptr;
  const auto value = found->second.find(key);
  return value == found->second.end() ? nullptr : &value->second;
}

std::string ProfileFile::Where(const Value& value) const {
  return fmt::format("{}:{}", path, value.line);
}

std::string ProfileFile::Describe() const {
  return not_read.empty() ? path : fmt::format("{} ({})", path, not_read);
}

ProfileFile ParseProfileFile(const std::string& path, std::string_view text, ProfileFileKind kind) {
  return Parser(path, kind).Parse(text);
}

ProfileFile ReadProfileFile(const Environment& environment, ProfileFileKind kind) {
  const bool is_config = kind == ProfileFileKind::kConfig;
  const char* const variable = is_config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE";
  const std::optional<std::string> named = environment(variable);
  const std::optional<std::string> home = environment("HOME");
  std::string path = named.value_or(is_config ? "~/.aws/config" : "~/.aws/credentials");
  if (path.starts_with("~/")) {
    if (!home) return {.path = path, .not_read = "HOME is not set", .profiles = {}};
    path.replace(0, 1, *home);
  }
  std::string text;
  try {
    text = ReadFile(path);
  } catch (const Error& error) {
    if (error.is_missing_file())
      return {.path = path, .not_read = "does not exist", .profiles = {}};
    if (named || error.code() != ErrorCode::kNoInput) throw error.WithContext(variable);
    return {.path = path, .not_read = "may not be read", .profiles = {}};
  }
  return ParseProfileFile(path, text, kind);
}

}  // namespace renzan::s3
