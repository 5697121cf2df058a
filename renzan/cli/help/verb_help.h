#pragma once

// What the program's own help says about its verbs, as plain values: man pages, completions and
// the search for a misspelt word are made from the same text that --help prints. Immutable values.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace renzan {

struct OptionHelp {
  std::vector<std::string> names;    // "-o", "--output"; none for an argument
  std::string argument;              // the name of an argument: "config"
  std::string value;                 // what an option takes: "TEXT"; empty for a flag
  std::vector<std::string> choices;  // the words that the value may be, where they are few
  std::string text, default_text;
  bool required = false, repeated = false;
};

struct VerbHelp {
  std::string path;  // "renzan data import": from the program's name on
  std::string name;  // "import"
  std::string group;
  std::string text;                   // one line
  std::string notes;                  // what stands below the options, without its examples
  std::vector<std::string> examples;  // lines
  std::vector<OptionHelp> options, arguments;
  std::vector<VerbHelp> verbs;
  bool needs_verb = false;  // does nothing by itself
};

// "renzan data import"
std::string VerbPath(const CLI::App& app);

// `app` with all its verbs, except those of no group, which are hidden.
VerbHelp DescribeVerbs(const CLI::App& app);

}  // namespace renzan
