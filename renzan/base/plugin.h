#pragma once

// Parts of Renzan that are libraries of their own, loaded when they are first needed: what they
// need is not on every machine, or they take long to compile. They are of the build of what loads
// them, which is checked, so that C++ objects and exceptions may pass between the two.

#include <string>

#include "renzan/base/error.h"

namespace renzan {

struct Plugin {
  const char* file;  // "librenzan_jobs.so"
  const char*
      build;  // its function that returns its BuildId(): the only one that any build may call
  // For errors: their code, the part ("the job system"), and what to do.
  ErrorCode code;
  const char* what;
  const char* advice;
};

// The path of one that lies beside this program, or in ../lib. Throws an Error if neither exists.
std::string PathOfPlugin(const Plugin& plugin);

// Returns the handle for dlsym(). `own_build`: BuildId(). `host`: who loads it, for errors. Throws
// an Error if `path` cannot be loaded or is of another build.
void* LoadPlugin(const Plugin& plugin, const std::string& path, const std::string& own_build,
                 const std::string& host = "this program");

// The function of that name; `handle` is LoadPlugin()'s. A library of the same build has it.
void* FunctionOfPlugin(void* handle, const char* name);

}  // namespace renzan
