#pragma once

// What belongs to the program and is started or loaded by it.

#include <string>

namespace renzan {

// The path of renzan-supervisor, which supervises one attempt of a job: next to this program (build
// directory), or in ../libexec/renzan (installation). Throws Error kNoInput.
std::string SupervisorProgram();

// From now on this program can use paths in object stores ("s3://..."): librenzan_s3.so, which has
// their client, is loaded when the first one is used. Its errors are kNoInput.
void UseObjectStores();

// Loads that library and returns its path. Throws the same errors.
std::string CheckObjectStores();

}  // namespace renzan
