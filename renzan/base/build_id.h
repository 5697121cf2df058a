#pragma once

// What this program was built from. Programs only: the library `renzan_build_id` is linked by them,
// so that a changed source does not rebuild every test (cmake/build_id.cmake).

namespace renzan {

// Twelve hexadecimal digits, a hash over the sources, the compiler and its flags: "3f9a0c51d2be".
const char* BuildId();

}  // namespace renzan
