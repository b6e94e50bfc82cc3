#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/config.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/signals.hpp"

namespace rmsp::mspmv {
namespace {

struct Options {
    Config::Matrix matrix;
    std::vector<std::string> description;
    std::string output;
};

template <class T>
int generate_to(const Options& options)
{
    Config::Matrix config = options.matrix;
    config.generate = fmt::format("{}", fmt::join(options.description, " "));
    const ProgressBar bar;
    const CsrMatrix<T> matrix = load_matrix<T>(config, bar.callback());

    const PendingOutput pending(options.output);
    WriteOptions write_options;
    write_options.comment = describe(config);
    write_options.progress = bar.callback();
    write_matrix<T>(options.output, matrix.view(), write_options);
    clear_progress_line();
    print(written_text(options.output, matrix));
    return 0;
}

}  // namespace

void add_structure_options(CLI::App& command, Config::Matrix& matrix)
{
    command.add_flag("--plus-identity", matrix.plus_identity, "write A + I instead of A");
    command
        .add_option("--kron", matrix.kron,
                    "write the Kronecker product with a block of N rows and columns: N unknowns at each node")
        ->type_name("N")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command.add_flag("--renumber", matrix.renumber, "write rows and columns in the order of Cuthill and McKee");
}

void add_generate(CLI::App& app, Action& action)
{
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("generate", "Generate a test matrix and write it to a file");
    command
        ->add_option("description", options->description,
                     "stencil27 NX NY NZ | stencil7 NX NY NZ | banded ROWS HALF_BAND | rmat SCALE EDGE_FACTOR | "
                     "random ROWS COLS PER_ROW | powerlaw ROWS PER_ROW EXPONENT")
        ->type_name("KIND SIZE...")
        ->required();
    command
        ->add_option("-o,--output", options->output,
                     "file to write; its name ends in .mtx, .mtx.gz, .mtx.xz, .mtx.zst or .npz")
        ->type_name("FILE")
        ->required();
    options->matrix.values = "random";
    command->add_option("--seed", options->matrix.seed, "seed of structure and values")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command->add_option("--values", options->matrix.values, "random, ones, or (stencils) laplace")
        ->type_name("KIND")
        ->check(CLI::IsMember({"random", "ones", "laplace"}))
        ->capture_default_str();
    add_structure_options(*command, options->matrix);
    command->add_option("--precision", options->matrix.precision, "double or float")
        ->type_name("TYPE")
        ->check(CLI::IsMember({"double", "float"}))
        ->capture_default_str();
    command->footer(
        "Examples:\n"
        "  mspmv generate stencil27 100 100 100 -o stencil.npz\n"
        "  mspmv generate stencil7 64 64 64 --values laplace -o poisson.mtx.zst\n"
        "  mspmv generate rmat 18 16 --seed 7 --precision float -o graph.npz");
    command->callback([&action, options] {
        action = [options] {
            return options->matrix.precision == "float" ? generate_to<float>(*options) : generate_to<double>(*options);
        };
    });
}

}  // namespace rmsp::mspmv
