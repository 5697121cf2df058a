#pragma once

// The content of the program's help as plain values, from which man pages, completions and spelling
// suggestions are generated. Immutable values.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace renzan {

struct OptionHelp {
  std::vector<std::string> names;    // "-o", "--output"; none for an argument
  std::string argument;              // the name of an argument: "config"
  std::string value;                 // the value of an option: "TEXT"; empty for a flag
  std::vector<std::string> choices;  // the allowed words, if the value is one of a few
  std::string text, default_text;
  bool required = false, repeated = false;
};

struct VerbHelp {
  std::string path;  // "renzan data import", starting with the program's name
  std::string name;  // "import"
  std::string group;
  std::string text;                   // one line
  std::string notes;                  // the text below the options, without examples
  std::vector<std::string> examples;  // lines
  std::vector<OptionHelp> options, arguments;
  std::vector<VerbHelp> verbs;
  bool needs_verb = false;  // cannot be used without a sub-verb
};

// "renzan data import"
std::string VerbPath(const CLI::App& app);

// `app` with all its verbs, except hidden ones (those without a group).
VerbHelp DescribeVerbs(const CLI::App& app);

}  // namespace renzan
