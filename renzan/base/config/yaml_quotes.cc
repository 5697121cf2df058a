#include "renzan/base/config/yaml_quotes.h"

#include <algorithm>

namespace renzan::internal {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsBlankOrBreak(char c) { return IsBlank(c) || c == '\n'; }

// `open` is a quote's offset.
QuotedText ReadQuoted(std::string_view yaml, size_t open) {
  const char quote = yaml[open];
  for (size_t i = open + 1; i < yaml.size(); ++i) {
    if (quote == '"' && yaml[i] == '\\') {
      ++i;
    } else if (yaml[i] == quote) {
      if (quote == '"' || i + 1 == yaml.size() || yaml[i + 1] != quote) return {open, i};
      ++i;  // '' is a quote in the text
    }
  }
  return {open, kNone};
}

// Finds the quoted texts of a document, valid or not, from its first to its last.
class QuoteFinder {
 public:
  explicit QuoteFinder(std::string_view yaml) : yaml_(yaml) {}

  std::optional<QuotedText> Next() {
    while (at_ < yaml_.size()) {
      const char c = yaml_[at_];
      if (c == '\n') {
        BeginLine();
      } else if (IsBlank(c)) {
        ++at_;
      } else if (c == '#' && (at_ == 0 || IsBlankOrBreak(yaml_[at_ - 1]))) {
        SkipLine();
      } else if (begins_node_ && (c == '"' || c == '\'')) {
        return TakeQuoted();
      } else if (begins_node_) {
        BeginNode(c);
      } else {
        GoOn(c);
      }
    }
    return std::nullopt;
  }

 private:
  void BeginLine() {
    ++at_;
    line_begin_ = at_;
    begins_line_ = begins_node_ = true;
  }
  void SkipLine() { at_ = std::min(yaml_.find('\n', at_), yaml_.size()); }
  bool IsFollowedByBlank() const {
    return at_ + 1 == yaml_.size() || IsBlankOrBreak(yaml_[at_ + 1]);
  }

  QuotedText TakeQuoted() {
    NoteIndentation();
    const QuotedText text = ReadQuoted(yaml_, at_);
    at_ = text.is_closed() ? text.close + 1 : yaml_.size();
    begins_node_ = false;
    after_quoted_ = at_;
    return text;
  }

  // The keys of a mapping begin where its first one does, which may be after dashes.
  void NoteIndentation() {
    if (begins_line_) indentation_ = at_ - line_begin_;
    begins_line_ = false;
  }

  void BeginNode(char c) {
    if ((c == '-' || c == '?') && IsFollowedByBlank()) {
      if (begins_line_) indentation_ = at_ - line_begin_;
      ++at_;
    } else if (c == '!' || c == '&') {
      NoteIndentation();
      while (at_ < yaml_.size() && !IsBlankOrBreak(yaml_[at_])) ++at_;
    } else if (depth_ == 0 && (c == '|' || c == '>')) {
      SkipBlockText();
    } else if (c == '[' || c == '{') {
      NoteIndentation();
      ++depth_;
      ++at_;
    } else {
      NoteIndentation();
      begins_node_ = false;
      GoOn(c);
    }
  }

  // Within plain text, or after a node.
  void GoOn(char c) {
    const bool in_brackets = depth_ > 0;  // elsewhere, brackets and commas are letters
    if (in_brackets && (c == '[' || c == '{')) {
      ++depth_;
      begins_node_ = true;
    } else if (in_brackets && (c == ']' || c == '}')) {
      --depth_;
    } else if (in_brackets && c == ',') {
      begins_node_ = true;
    } else if (c == ':' && (IsFollowedByBlank() || (in_brackets && at_ == after_quoted_))) {
      begins_node_ = true;
    }
    ++at_;
  }

  // Lines that are indented more than the node that they belong to.
  void SkipBlockText() {
    SkipLine();
    while (at_ < yaml_.size()) {
      const size_t begin = at_ + 1;
      size_t text = begin;
      while (text < yaml_.size() && yaml_[text] == ' ') ++text;
      const bool is_empty = text == yaml_.size() || yaml_[text] == '\n' || yaml_[text] == '\r';
      if (!is_empty && text - begin <= indentation_) return;
      at_ = begin;
      SkipLine();
    }
  }

  std::string_view yaml_;
  size_t at_ = 0, line_begin_ = 0, indentation_ = 0, after_quoted_ = kNone;
  int depth_ = 0;  // of [] and {}
  bool begins_line_ = true, begins_node_ = true;
};

}  // namespace

std::optional<QuotedText> QuotedTextOf(std::string_view yaml, size_t offset) {
  while (offset < yaml.size() && (yaml[offset] == '!' || yaml[offset] == '&')) {
    while (offset < yaml.size() && !IsBlankOrBreak(yaml[offset])) ++offset;
    while (offset < yaml.size() && IsBlankOrBreak(yaml[offset])) ++offset;
  }
  if (offset >= yaml.size() || (yaml[offset] != '"' && yaml[offset] != '\'')) return std::nullopt;
  return ReadQuoted(yaml, offset);
}

std::optional<QuotedText> SuspectQuote(std::string_view yaml, size_t line) {
  QuoteFinder finder(yaml);
  std::optional<QuotedText> suspect;
  while (const std::optional<QuotedText> text = finder.Next()) {
    if (!text->is_closed()) return text;
    const bool is_long = yaml.substr(text->open, text->close - text->open).find('\n') != kNone;
    if (is_long && PlaceOf(yaml, text->close).line == line) suspect = text;
  }
  return suspect;
}

LineAndColumn PlaceOf(std::string_view yaml, size_t offset) {
  const std::string_view before = yaml.substr(0, offset);
  const size_t line_end = before.rfind('\n');
  return {.line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')),
          .column = line_end == kNone ? offset : offset - line_end - 1};
}

}  // namespace renzan::internal
