#include "bench/options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace renzan::bench {
namespace {

template <typename T>
CLI::Option* AddTo(CLI::App* app, const std::string& name, T* value, const std::string& help) {
  CLI::Option* option = app->add_option(name, *value, help);
  if (name.starts_with("-")) return option->capture_default_str();
  return option->required();
}

}  // namespace

Options::Options(const std::string& description)
    : app_(std::make_unique<CLI::App>(description)), current_(app_.get()) {}

Options::~Options() = default;

template <typename T>
void Options::Add(const std::string& name, T* value, const std::string& help) {
  AddTo(current_, name, value, help);
}

template <typename T>
void Options::AddInRange(const std::string& name, T* value, std::type_identity_t<T> least,
                         std::type_identity_t<T> most, const std::string& help) {
  AddTo(current_, name, value, help)->check(CLI::Range(least, most));
}

template <typename T>
void Options::AddPositive(const std::string& name, T* value, const std::string& help) {
  AddInRange(name, value, T{1}, std::numeric_limits<T>::max(), help);
}

void Options::AddOneOf(const std::string& name, std::string* value,
                       const std::vector<std::string>& choices) {
  AddTo(current_, name, value, "")->check(CLI::IsMember(choices));
}

void Options::BeginSubcommand(const std::string& name, const std::string& help) {
  app_->require_subcommand(1);
  current_ = app_->add_subcommand(name, help);
}

bool Options::Chosen(const std::string& subcommand) const {
  return app_->got_subcommand(subcommand);
}

void Options::ParseOrExit(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app_->exit(error));
  }
}

template void Options::Add(const std::string&, int*, const std::string&);
template void Options::Add(const std::string&, int64_t*, const std::string&);
template void Options::Add(const std::string&, uint64_t*, const std::string&);
template void Options::Add(const std::string&, double*, const std::string&);
template void Options::Add(const std::string&, std::string*, const std::string&);
template void Options::Add(const std::string&, std::vector<int64_t>*, const std::string&);
template void Options::Add(const std::string&, std::vector<double>*, const std::string&);
template void Options::AddInRange(const std::string&, int*, int, int, const std::string&);
template void Options::AddInRange(const std::string&, int64_t*, int64_t, int64_t,
                                  const std::string&);
template void Options::AddPositive(const std::string&, int*, const std::string&);
template void Options::AddPositive(const std::string&, int64_t*, const std::string&);

}  // namespace renzan::bench
