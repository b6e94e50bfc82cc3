#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/paths.hpp"

/// Runs the built mspmv.
namespace rmsp::test {

/// The executable.
extern const char* const mspmv_path;

struct Outcome {
    int exit_code = -1;
    std::string out;
    std::string err;
};

/// Runs mspmv in the source tree with the given words and, before them, "NAME=value" settings of the environment;
/// RMSP_* variables of this process are not passed on.
Outcome mspmv(const std::vector<std::string>& words, const std::vector<std::string>& environment = {});

/// The same in another folder.
Outcome mspmv_in(const std::string& folder, const std::vector<std::string>& words,
                 const std::vector<std::string>& environment = {});

/// What mspmv writes, to both streams, on a terminal that has so many columns, with the terminal's returns of the
/// carriage and the program's escape sequences. It is ended after as many seconds, if that is not 0.
std::string mspmv_on_terminal(int columns, const std::vector<std::string>& words,
                              const std::vector<std::string>& environment = {}, int seconds = 0);

/// Whether this build has mspmv-mpi.
bool has_mspmv_mpi();

/// Runs mspmv-mpi with the given words by so many processes of this machine, in a folder.
Outcome mspmv_mpi_in(const std::string& folder, const std::string& processes, const std::vector<std::string>& words);

/// A fresh empty folder of the running test, in the build tree; removed with the object.
class Scratch {
public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// Expects mspmv to end with this exit code, an error on standard error that holds the message, and nothing else
/// written.
void expect_failure(int exit_code, const std::string& message, const std::vector<std::string>& words);

std::string read_text(const std::string& path);

}  // namespace rmsp::test
