#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/io.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/signals.hpp"

namespace rmsp::mspmv {
namespace {

struct Options {
    std::vector<std::string> description;
    std::string output;
    std::uint64_t seed = 1;
    ValueKind values = ValueKind::random;
    std::string precision = "double";
};

template <class T>
int generate_to(const Options& options)
{
    const std::string description = fmt::format("{}", fmt::join(options.description, " "));
    const ProgressBar bar;
    GenerateOptions generate_options;
    generate_options.seed = options.seed;
    generate_options.values = options.values;
    generate_options.progress = bar.callback();
    const CsrMatrix<T> matrix = generate<T>(description, generate_options);

    const PendingOutput pending(options.output);
    WriteOptions write_options;
    write_options.comment = fmt::format("{}, seed {}", description, options.seed);
    write_options.progress = bar.callback();
    write_matrix<T>(options.output, matrix.view(), write_options);
    clear_progress_line();
    print(written_text(options.output, matrix));
    return 0;
}

}  // namespace

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
    command->add_option("--seed", options->seed, "seed of structure and values")->capture_default_str();
    command->add_option("--values", options->values, "random, ones, or (stencils) laplace")
        ->type_name("KIND")
        ->transform(CLI::Transformer(std::map<std::string, ValueKind>{
            {"random", ValueKind::random}, {"ones", ValueKind::ones}, {"laplace", ValueKind::laplace}}))
        ->default_str("random");
    command->add_option("--precision", options->precision, "double or float")
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
            return options->precision == "float" ? generate_to<float>(*options) : generate_to<double>(*options);
        };
    });
}

}  // namespace rmsp::mspmv
