#pragma once

// Identifies the build. Only programs link the library `renzan_build_id`, and code that must check
// that a library it loads is of the same build; otherwise every changed source file would relink
// every test (cmake/build_id.cmake).

namespace renzan {

// Twelve hexadecimal digits: a hash of the sources, the compiler and its flags, such as
// "3f9a0c51d2be".
const char* BuildId();

}  // namespace renzan
