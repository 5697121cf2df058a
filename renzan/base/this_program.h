#pragma once

// Where this program lies, to find what is installed with it and to start it again.

#include <optional>
#include <string>

namespace renzan {

// The path of this program's file, with symbolic links resolved. Where /proc is not mounted, it is
// the path by which the program was started. Throws Error kOsError if that leads nowhere either.
std::string ThisProgram();

// The same, of a program that sees /proc at `proc` and was started as `started_as`. For tests.
std::string ThisProgram(const std::string& proc, const char* started_as);

// `file` in the directory of this program or, if it is not there, in ../FOLDER: where a build and
// an installation keep what belongs to the program. Nothing if it is in neither.
std::optional<std::string> InstalledFile(const std::string& folder, const std::string& file);
// "neither BIN/FILE nor FOLDER/FILE exists", for errors.
std::string WhyNotInstalled(const std::string& folder, const std::string& file);

}  // namespace renzan
