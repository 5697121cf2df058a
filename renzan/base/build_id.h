#pragma once

// Identifies the build. Only programs link the library `renzan_build_id`, and what has to know that
// a library it loads is of the same build, so that a changed source file does not relink every test
// (cmake/build_id.cmake).

namespace renzan {

// Twelve hexadecimal digits: a hash of the sources, the compiler and its flags, such as
// "3f9a0c51d2be".
const char* BuildId();

}  // namespace renzan
