#pragma once

// Makes text from a file or another process safe to display: control characters and invalid bytes
// become C escape sequences, and long text is cut between characters.

#include <cstddef>
#include <string>
#include <string_view>

namespace renzan {

// Keeps printable ASCII and valid UTF-8; everything else becomes \n, \t or \xNN. For a
// field, a key or a name in a message.
std::string Escape(std::string_view text);

// The same, but keeps line breaks and tabs: for a whole message.
std::string EscapeMessage(std::string_view text);

// The first characters of a text, at most `bytes`, and "..." if it is longer. Cuts no UTF-8
// character in two. For Escape(), which makes text longer.
std::string ShortText(std::string_view text, size_t bytes);

}  // namespace renzan
