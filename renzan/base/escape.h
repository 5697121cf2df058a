#pragma once

// Text from a file or another process, made fit to be shown: bytes that a terminal would obey or
// cannot show become what C writes for them.

#include <string>
#include <string_view>

namespace renzan {

// Printable ASCII and well-formed UTF-8 stay; control characters and all other bytes become \n, \t
// or \xNN. For a field, a key or a name in a message.
std::string Escape(std::string_view text);

// The same, but line breaks and tabs stay: for a whole message.
std::string EscapeMessage(std::string_view text);

}  // namespace renzan
