#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/config.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/options.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/precision.hpp"

namespace rmsp::mspmv {
namespace {

struct GenerateArguments {
    Config::Matrix matrix;
    std::vector<std::string> description;
    std::string output;
    std::string coordinates;  ///< a file; empty: none
};

template <class T>
int generate_to(const GenerateArguments& options)
{
    require_writable(options.output);
    Config::Matrix config = options.matrix;
    config.generate = fmt::format("{}", fmt::join(options.description, " "));
    if (!options.coordinates.empty()) {
        require_writable(options.coordinates);
        const std::vector<double> coordinates = generated_coordinates(config.generate);
        write_vector<double>(options.coordinates, coordinates);
    }
    write_loaded<T>(config, options.output, describe(config));
    return 0;
}

}  // namespace

void add_generate(CLI::App& app, Action& action)
{
    auto options = std::make_shared<GenerateArguments>();
    CLI::App* command = app.add_subcommand("generate", "Generate a test matrix and write it to a file");
    command->add_option("KIND", options->description, fmt::format("{}", fmt::join(list_generators(), " | ")))
        ->type_name("SIZE")
        ->required();
    add_output(*command, "-o,--output", options->output);
    add_text(*command, "--coordinates", options->coordinates, "FILE",
             "also write where the nodes of elasticity are, as solver.amg_coordinates takes them");
    options->matrix.values = "random";
    add_matrix_options(*command, options->matrix, {"random", "ones", "laplace", "poisson"},
                       "random, ones, or of stencils laplace (singular), poisson (positive definite)");
    command->footer(
        "Examples:\n"
        "  mspmv generate stencil27 100 100 100 -o stencil.npz\n"
        "  mspmv generate stencil7 64 64 64 --values poisson -o poisson.mtx.zst\n"
        "  mspmv generate rmat 18 16 --seed 7 --precision float -o graph.npz");
    command->callback([&action, options] {
        action = [options] {
            return with_precision(options->matrix.precision, [&]<class T>() { return generate_to<T>(*options); });
        };
    });
}

}  // namespace rmsp::mspmv
