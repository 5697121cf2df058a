#pragma once

// Completion of verbs, flags and their choices in shells; file names everywhere else. Pure
// functions: the same help gives the same bytes.

#include <string>

#include "renzan/cli/help/verb_help.h"

namespace renzan {

// A script to source, or to install as bash-completion/completions/renzan.
std::string BashCompletion(const VerbHelp& program);

// A function to install as _renzan in a directory of $fpath.
std::string ZshCompletion(const VerbHelp& program);

}  // namespace renzan
