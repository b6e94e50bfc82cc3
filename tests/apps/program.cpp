#include "tests/apps/program.hpp"

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rmsp::test {
namespace {

std::string quoted(const std::string& word)
{
    std::string out = "'";
    for (const char c : word) {
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return out + "'";
}

/// Runs a command of the shell, whose words are quoted where they have to be.
Outcome run_in(const std::string& folder, const std::string& program, const std::vector<std::string>& words,
               const std::vector<std::string>& environment)
{
    const Scratch scratch;
    std::string command =
        "cd " + quoted(folder) +
        " && env -u RMSP_DEVICES -u RMSP_BIND -u RMSP_TRANSPORT -u RMSP_IO_MAX_BYTES RMSP_CACHE_DIR=off";
    for (const std::string& setting : environment) {
        command += ' ' + quoted(setting);
    }
    command += ' ' + program;
    for (const std::string& word : words) {
        command += ' ' + quoted(word);
    }
    command += " >" + quoted(scratch / "out") + " 2>" + quoted(scratch / "err") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(scratch / "out"), read_text(scratch / "err")};
}

}  // namespace

const char* const mspmv_path = RMSP_MSPMV;

Outcome mspmv(const std::vector<std::string>& words, const std::vector<std::string>& environment)
{
    return mspmv_in(source_path(""), words, environment);
}

Outcome mspmv_in(const std::string& folder, const std::vector<std::string>& words,
                 const std::vector<std::string>& environment)
{
    return run_in(folder, quoted(mspmv_path), words, environment);
}

std::string mspmv_on_terminal(int columns, const std::vector<std::string>& words,
                              const std::vector<std::string>& environment, int seconds)
{
    std::vector<std::string> all{"timeout",
                                 std::to_string(seconds),
                                 "env",
                                 "-u",
                                 "RMSP_DEVICES",
                                 "-u",
                                 "RMSP_BIND",
                                 "-u",
                                 "COLUMNS",
                                 "-u",
                                 "NO_COLOR",
                                 "TERM=xterm",
                                 "RMSP_CACHE_DIR=off"};
    all.insert(all.end(), environment.begin(), environment.end());
    all.emplace_back(mspmv_path);
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : all) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    winsize size{};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    int terminal = -1;
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
        ::execvp(arguments.front(), arguments.data());
        ::_exit(127);
    }
    EXPECT_GT(child, 0) << "no terminal";
    std::string out;
    std::array<char, 4096> buffer{};
    // The last to close the other side makes this an error.
    for (ssize_t count = 0; (count = ::read(terminal, buffer.data(), buffer.size())) > 0;) {
        out.append(buffer.data(), static_cast<std::size_t>(count));
    }
    ::close(terminal);
    ::waitpid(child, nullptr, 0);
    return out;
}

#ifdef RMSP_MSPMV_MPI
bool has_mspmv_mpi() { return true; }

Outcome mspmv_mpi_in(const std::string& folder, const std::string& processes, const std::vector<std::string>& words)
{
    return run_in(folder, RMSP_MPIRUN " " + processes + ' ' + quoted(RMSP_MSPMV_MPI), words, {RMSP_MPI_ENVIRONMENT});
}
#else
bool has_mspmv_mpi() { return false; }

Outcome mspmv_mpi_in(const std::string&, const std::string&, const std::vector<std::string>&) { return {}; }
#endif

Scratch::Scratch()
{
    static int count = 0;
    path_ = std::filesystem::path(build_path("tests/apps")) /
            ("scratch-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
}

Scratch::~Scratch()
{
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

void expect_failure(int exit_code, const std::string& message, const std::vector<std::string>& words)
{
    const Outcome outcome = mspmv(words);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, testing::HasSubstr("mspmv: error: "));
    EXPECT_THAT(outcome.err, testing::HasSubstr(message));
    EXPECT_EQ(outcome.out, "");
}

std::string read_text(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in) << "cannot read " << path;
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace rmsp::test
