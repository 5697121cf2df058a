#pragma once

// Quotes that are never closed: yaml-cpp takes all that follows such a quote for its text, or fails
// somewhere below it. Internal to config_tree.cc.

#include <cstddef>
#include <optional>
#include <string_view>

namespace renzan::internal {

// Of quoted text, both offsets in the document.
struct QuotedText {
  size_t open = 0;   // of the quote that opens it
  size_t close = 0;  // of the one that closes it; npos if none does

  bool is_closed() const { return close != std::string_view::npos; }
};

// The quoted text of the node that begins at `offset` (with its tag or anchor, if it has one).
// Nothing if it is not quoted.
std::optional<QuotedText> QuotedTextOf(std::string_view yaml, size_t offset);

// For a document that is not valid YAML: the text whose quote is never closed, or else the last one
// that goes on over several lines and ends in the line `line` (from 0). A guess, because such a
// document has no structure to rely on.
std::optional<QuotedText> SuspectQuote(std::string_view yaml, size_t line);

// From 0, in bytes.
struct LineAndColumn {
  size_t line = 0, column = 0;
};
LineAndColumn PlaceOf(std::string_view yaml, size_t offset);

}  // namespace renzan::internal
