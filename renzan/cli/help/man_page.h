#pragma once

// Manual pages of verbs. Pure functions.

#include <string>

#include "renzan/cli/help/verb_help.h"

namespace renzan {

// "renzan-data-import": the name of the page, and with ".1" of its file.
std::string ManPageName(const VerbHelp& verb);

// A page in man(7) macros. `program` is the whole program, whose exit codes and version every page
// refers to. The same help gives the same bytes.
std::string ManPage(const VerbHelp& verb, const VerbHelp& program, const std::string& version);

}  // namespace renzan
