#pragma once

// Manual pages of verbs. Pure functions.

#include <string>

#include "renzan/cli/help/verb_help.h"

namespace renzan {

// "renzan-data-import": the page's name and, with ".1", its file's.
std::string ManPageName(const VerbHelp& verb);

// In man(7) macros. `program` is the whole program, whose notes (exit codes) and version every
// page refers to. The same help gives the same bytes.
std::string ManPage(const VerbHelp& verb, const VerbHelp& program, const std::string& version);

}  // namespace renzan
