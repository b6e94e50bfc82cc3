#include <memory>
#include <string>

#include <rmsp/io.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/signals.hpp"

namespace rmsp::mspmv {
namespace {

struct Options {
    std::string input;
    std::string output;
    std::string precision = "double";
};

template <class T>
int convert(const Options& options)
{
    const ProgressBar bar;
    ReadOptions read_options;
    read_options.progress = bar.callback();
    const CsrMatrix<T> matrix = read_matrix<T>(options.input, read_options);

    const PendingOutput pending(options.output);
    WriteOptions write_options;
    write_options.progress = bar.callback();
    write_matrix<T>(options.output, matrix.view(), write_options);
    clear_progress_line();
    print(written_text(options.output, matrix));
    return 0;
}

}  // namespace

void add_convert(CLI::App& app, Action& action)
{
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("convert", "Read a matrix and write it in another file format");
    command->add_option("IN", options->input, "Matrix Market (.mtx, plain or .gz, .xz, .zst) or SciPy's .npz")
        ->type_name("FILE")
        ->required();
    command
        ->add_option("OUT", options->output, "file to write; its name ends in .mtx, .mtx.gz, .mtx.xz, .mtx.zst or .npz")
        ->type_name("FILE")
        ->required();
    command->add_option("--precision", options->precision, "precision of the values: double or float")
        ->type_name("TYPE")
        ->check(CLI::IsMember({"double", "float"}))
        ->capture_default_str();
    command->footer(
        "Symmetric files come out expanded, with entries at the same place added together.\n"
        "Examples:\n"
        "  mspmv convert matrix.mtx.gz matrix.npz\n"
        "  mspmv convert matrix.npz matrix.mtx");
    command->callback([&action, options] {
        action = [options] {
            return options->precision == "float" ? convert<float>(*options) : convert<double>(*options);
        };
    });
}

}  // namespace rmsp::mspmv
