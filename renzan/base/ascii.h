#pragma once

// ASCII character classes, independent of the locale. Pure functions.

namespace renzan {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace renzan
