#pragma once

// The command line of a benchmark. CLI11 takes five seconds to compile: here it is compiled once
// for all of them.

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
}

namespace renzan::bench {

class Options {
 public:
  explicit Options(const std::string& description);
  ~Options();

  // `name` is "--rows", or "trace" for a required positional argument. `*value` is the default,
  // which the help shows; a vector takes one or more values. The types are those that options.cc
  // instantiates: int, int64_t, uint64_t, double, std::string, and vectors of int64_t and double.
  template <typename T>
  void Add(const std::string& name, T* value, const std::string& help = "");
  template <typename T>
  void AddInRange(const std::string& name, T* value, std::type_identity_t<T> least,
                  std::type_identity_t<T> most, const std::string& help = "");
  template <typename T>
  void AddPositive(const std::string& name, T* value, const std::string& help = "");
  void AddOneOf(const std::string& name, std::string* value,
                const std::vector<std::string>& choices);

  // What follows until the next one are options of this subcommand, of which one must be given.
  void BeginSubcommand(const std::string& name, const std::string& help);
  bool Chosen(const std::string& subcommand) const;

  // Exits after --help, and with CLI11's status if the arguments are wrong.
  void ParseOrExit(int argc, char** argv);

 private:
  const std::unique_ptr<CLI::App> app_;
  CLI::App* current_;  // the subcommand, or app_
};

}  // namespace renzan::bench
