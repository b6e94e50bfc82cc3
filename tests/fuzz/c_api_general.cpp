#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "tests/fuzz/c_api_session.hpp"

namespace rmsp::fuzz {
namespace {

struct Setting {
    const char* key;
    const char* value;
};

/// What changes how matrices, products and solvers are made, and nothing that takes long.
constexpr Setting settings[] = {
    {"run.mode", "streamed"},
    {"run.mode", "resident"},
    {"run.vectors", "rows"},
    {"run.vectors", "host"},
    {"run.iterations", "2"},
    {"run.warmup", "0"},
    {"run.alpha", "2"},
    {"run.beta", "0.5"},
    {"run.chunk_mib", "1"},
    {"run.merge", "host"},
    {"run.merge", "nccl"},
    {"matrix.precision", "float"},
    {"matrix.values", "ones"},
    {"matrix.values", "poisson"},
    {"matrix.format", "csc"},
    {"matrix.format", "coo"},
    {"matrix.order", "column"},
    {"matrix.order", "none"},
    {"matrix.plus_identity", "true"},
    {"matrix.kron", "2"},
    {"matrix.renumber", "true"},
    {"partition.strategy", "rows"},
    {"partition.alignment", "exact"},
    {"partition.alignment", "row"},
    {"partition.devices", "1"},
    {"partition.devices", "9"},
    {"partition.balance", "time"},
    {"partition.exchange", "entries"},
    {"partition.exchange", "ranges"},
    {"partition.pointers", "host"},
    {"partition.unsorted", "sort"},
    {"partition.unsorted", "split"},
    {"kernel.spmv", "csr-reference"},
    {"kernel.spmv", "diagonals"},
    {"kernel.spmv", "row-slices"},
    {"kernel.spmv", "ehyb"},
    {"kernel.spmv", "ehyb-ghosts"},
    {"kernel.spmv", "ehyb-metis"},
    {"kernel.spmv", "csc-reference"},
    {"kernel.spmv", "coo-openmp-scatter"},
    {"kernel.spmv", "coo-reference"},
    {"kernel.spmv", "sell"},
    {"kernel.spmv", "no such kernel"},
    {"kernel.values", "float"},
    {"kernel.determinism", "run"},
    {"kernel.determinism", "device_count"},
    {"kernel.expected_applies", "1000"},
    {"stream.encoding", "auto"},
    {"stream.coordinates", "indices"},
    {"stream.numa", "copy"},
    {"stream.device_mib", "1"},
    {"spgemm.kernel", "spgemm-reference"},
    {"spgemm.accumulator", "hash"},
    {"spgemm.accumulator", "scatter"},
    {"spgemm.memory_limit", "3000"},
    {"spgemm.memory_limit", "1"},
    {"spgemm.prune_below", "2"},
    {"solver.method", "cg_single"},
    {"solver.method", "cg_pipelined"},
    {"solver.method", "auto"},
    {"solver.method", "fcg"},
    {"solver.method", "minres"},
    {"solver.method", "gmres"},
    {"solver.method", "bicgstab"},
    {"solver.method", "idr"},
    {"solver.method", "cgs"},
    {"solver.method", "bicg"},
    {"solver.method", "chebyshev"},
    {"solver.method", "ir"},
    {"solver.method", "lsqr"},
    {"solver.preconditioner", "jacobi"},
    {"solver.preconditioner", "l1-jacobi"},
    {"solver.preconditioner", "block-jacobi"},
    {"solver.preconditioner", "spai-0"},
    {"solver.preconditioner", "spai"},
    {"solver.preconditioner", "isai"},
    {"solver.preconditioner", "fsai"},
    {"solver.preconditioner", "polynomial"},
    {"solver.preconditioner", "schwarz-ilu0"},
    {"solver.preconditioner", "schwarz-ic0"},
    {"solver.preconditioner", "gauss-seidel"},
    {"solver.preconditioner", "amg"},
    {"solver.preconditioner", "sa-amg"},
    {"solver.tolerance", "0"},
    {"solver.tolerance", "0.1"},
    {"solver.absolute_tolerance", "1e-3"},
    {"solver.max_iterations", "0"},
    {"solver.max_iterations", "1"},
    {"solver.project_constants", "true"},
    {"solver.restart", "1"},
    {"solver.shadow", "9"},
    {"solver.inner", "cg"},
    {"solver.block_size", "3"},
    {"solver.pattern_power", "0"},
    {"solver.most_entries", "1"},
    {"solver.degree", "0"},
    {"solver.smallest_eigenvalue", "1"},
    {"solver.largest_eigenvalue", "8"},
    {"solver.amg_coarse_rows", "1"},
    {"solver.amg_cycle", "k"},
    {"solver.amg_cycle", "w"},
    {"solver.amg_aggressive_levels", "1"},
    {"solver.amg_interpolation", "direct"},
    {"solver.amg_interpolation", "tentative"},
    {"solver.amg_smoother", "gauss-seidel"},
    {"solver.amg_unknowns", "2"},
    {"eigen.method", "lanczos"},
    {"eigen.which", "largest"},
    {"eigen.count", "1"},
    {"eigen.count", "16"},
    {"eigen.preconditioner", "jacobi"},
    {"eigen.basis", "3"},
};

/// Of a runtime, besides those that options begin with here.
constexpr Setting runtime_settings[] = {
    {"runtime.devices", "host:1x1"},    {"runtime.devices", "host:2x1"},      {"runtime.devices", "host:3x1"},
    {"runtime.devices", "host:0"},      {"runtime.devices", "host:5000"},     {"runtime.devices", "77"},
    {"runtime.devices", "shared:0,0"},  {"runtime.threads", "one"},           {"runtime.weights", "1, 3"},
    {"runtime.transports", "host"},     {"runtime.transports", "nccl, peer"}, {"runtime.memory_limit", "2000"},
    {"runtime.memory_limit", "100000"}, {"runtime.topology", "/dev/null"},
};

int cancel_soon(void* context, std::int64_t iteration, double, double, double)
{
    return iteration >= *static_cast<const int*>(context) ? 1 : 0;
}

/// A folder that goes with the process.
const std::string& folder()
{
    static const struct Folder {
        Folder()
        {
            char name[] = "/tmp/fuzz_c_api_XXXXXX";
            require(::mkdtemp(name) != nullptr, "no folder for files");
            path = name;
        }
        ~Folder()
        {
            std::error_code ignored;
            std::filesystem::remove_all(path, ignored);
        }
        std::string path;
    } of_process;
    return of_process.path;
}

rmsp_options* begin_options()
{
    rmsp_options* options = nullptr;
    require(rmsp_options_create(&options) == RMSP_SUCCESS, "no options");
    constexpr Setting first[] = {
        {"runtime.devices", "host:2x1"}, {"runtime.cache", "off"},       {"runtime.bind", "none"},
        {"runtime.limit_gbs", "10"},     {"run.iterations", "1"},        {"run.warmup", "1"},
        {"solver.max_iterations", "20"}, {"eigen.max_iterations", "20"}, {"eigen.count", "2"}};
    for (const Setting& setting : first) {
        require(rmsp_options_set(options, setting.key, setting.value) == RMSP_SUCCESS, "a good option was refused");
    }
    return options;
}

/// Two that stay for all inputs, since threads and tests of links take longer than the calls.
const std::array<OpenRuntime, 2>& lasting_runtimes()
{
    static const std::array<OpenRuntime, 2> lasting = [] {
        std::array<OpenRuntime, 2> out;
        for (OpenRuntime& one : out) {
            rmsp_options* options = begin_options();
            rmsp_options_set(options, "runtime.devices", &one == out.data() ? "host:2x1" : "host:1x1");
            require(rmsp_runtime_create(options, &one.handle) == RMSP_SUCCESS, "no runtime");
            rmsp_options_destroy(options);
            one.alive = std::make_shared<bool>(true);
        }
        return out;
    }();
    return lasting;
}

}  // namespace

Session::Session(const std::uint8_t* data, std::size_t size)
    : in_(data, size), runtimes_(lasting_runtimes().begin(), lasting_runtimes().end())
{
}

Session::~Session()
{
    for (std::size_t i = 0; i < runtimes_.size(); ++i) {
        if (i < lasting_runtimes().size()) {
            require(rmsp_runtime_synchronize(runtimes_[i].handle) == RMSP_SUCCESS, "work was left that fails");
        } else {
            *runtimes_[i].alive = false;
            rmsp_runtime_destroy(runtimes_[i].handle);
        }
    }
    if (wrote_) {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(folder())) {
            require(entry.path().string().find(".part") == std::string::npos, "an unfinished file was left");
            std::filesystem::remove_all(entry.path(), ignored);
        }
    }
}

bool Session::succeeded(rmsp_status status, unsigned also)
{
    constexpr unsigned always = 1U << RMSP_SUCCESS | 1U << RMSP_ERROR_USAGE | 1U << RMSP_ERROR_OUT_OF_MEMORY;
    require(status >= RMSP_SUCCESS && status <= RMSP_ERROR_BUSY && ((always | also) >> status & 1U) != 0,
            "a status that the function may not return");
    if (status != RMSP_SUCCESS) {
        require(std::strncmp(rmsp_last_error(), "rmsp_", 5) == 0, "an error without its function");
    }
    require(std::strcmp(rmsp_status_name(status), "unknown") != 0, "a status without a name");
    return status == RMSP_SUCCESS;
}

const OpenRuntime& Session::runtime()
{
    static const OpenRuntime none;
    const unsigned byte = in_.byte();
    return byte >= 240 ? none : runtimes_[byte < 128 ? 0 : byte % runtimes_.size()];
}

double Session::scalar()
{
    static constexpr double scalars[] = {1, 0, -1, 0.5, 2, 1, 0, NAN, INFINITY, 1e300};
    return in_.one_of(scalars);
}

void* Session::array(rmsp_value_type type, std::int64_t size, Vector& made)
{
    if (size > most_entries || in_.seldom()) {
        return nullptr;
    }
    Numbers numbers(in_);
    for (std::int64_t i = 0; i < size; ++i) {
        made.entries.push_back(numbers.value());
    }
    made.type = type;
    made.exact = numbers.are_exact();
    return arena_.values(type, made.entries);
}

const char* Session::path()
{
    static constexpr const char* names[] = {"a.mtx",    "a.npz", "a.mtx.gz", "v.npy", "v.mtx", "v.mtx.zst",
                                            "a.mtx.xz", "a.txt", "no/a.npz", "",      ".npy",  "a.mtx/a.npz"};
    if (in_.seldom()) {
        return nullptr;
    }
    const char* const name = in_.one_of(names);
    path_ = *name == '\0' ? "" : folder() + "/" + name;
    return path_.c_str();
}

rmsp_options* Session::options() { return options_.pick(in_).handle; }

void Session::lists()
{
    static constexpr decltype(&rmsp_list_kernels) functions[] = {rmsp_list_kernels, rmsp_list_solvers,
                                                                 rmsp_list_preconditioners, rmsp_list_keys};
    text(in_.one_of(functions));
    const auto number = static_cast<int>(in_.byte()) - 5;
    require(*rmsp_status_name(static_cast<rmsp_status>(number)) != '\0', "a status without a text");
    require(*rmsp_outcome_name(static_cast<rmsp_outcome>(number)) != '\0', "an outcome without a text");
    require(*rmsp_version() != '\0' && rmsp_commit() != nullptr && rmsp_build_features() != nullptr, "no version");
    rmsp_free(nullptr);
}

void Session::options_create()
{
    static constexpr int never = 1 << 20;
    static constexpr int soon = 2;
    rmsp_options* const made = begin_options();
    if (in_.seldom()) {
        require(succeeded(
                    rmsp_options_set_callback(made, cancel_soon, const_cast<int*>(in_.below(2) == 0 ? &never : &soon))),
                "a callback was refused");
    }
    if (in_.seldom()) {
        require(succeeded(rmsp_options_set_stream(made, nullptr)), "a stream was refused");
    }
    options_.put(in_, made, nullptr);
    if (in_.seldom()) {
        succeeded(rmsp_options_create(nullptr));
    }
}

void Session::options_set()
{
    const auto& [to, none] = options_.pick(in_);
    const Setting& setting = in_.one_of(settings);
    const bool is_null = in_.seldom();
    const bool done = succeeded(rmsp_options_set(to, is_null ? nullptr : setting.key, setting.value));
    require(done == (to != nullptr && !is_null), "a good option was refused, or none was taken");
}

/// Any key and value, for options that nothing is made of: they may ask for any work.
void Session::options_text()
{
    std::string words[2];
    for (std::string& word : words) {
        if (in_.below(2) == 0) {
            const Setting& setting = in_.one_of(settings);
            word = &word == &words[0] ? setting.key : setting.value;
        }
        for (unsigned more = in_.below(12); more > 0; --more) {
            word.push_back(static_cast<char>(in_.byte()));
        }
    }
    rmsp_options* const made = begin_options();
    const bool set = succeeded(rmsp_options_set(made, words[0].c_str(), words[1].c_str()));
    char* value = nullptr;
    if (succeeded(rmsp_options_get(made, words[0].c_str(), &value))) {
        require(succeeded(rmsp_options_set(made, words[0].c_str(), value)), "an option is not taken as it is given");
        rmsp_free(value);
    } else {
        require(!set, "an option that was set has no value");
    }
    succeeded(rmsp_options_get(made, words[0].c_str(), nullptr));
    succeeded(rmsp_options_use_environment(in_.seldom() ? nullptr : made));
    rmsp_options_destroy(made);
}

void Session::runtime_create()
{
    constexpr std::size_t most = 4;
    rmsp_options* const with = begin_options();
    for (unsigned more = in_.below(3); more > 0; --more) {
        const Setting& setting = in_.one_of(runtime_settings);
        succeeded(rmsp_options_set(with, setting.key, setting.value));
    }
    OpenRuntime made{nullptr, std::make_shared<bool>(true)};
    const bool no_place = in_.seldom() || runtimes_.size() >= most;
    if (succeeded(rmsp_runtime_create(with, no_place ? nullptr : &made.handle), device | io)) {
        require(!no_place && made.handle != nullptr, "a runtime without a place");
        runtimes_.push_back(made);
    }
    rmsp_options_destroy(with);
}

void Session::runtime_destroy()
{
    if (runtimes_.size() > lasting_runtimes().size()) {
        *runtimes_.back().alive = false;
        rmsp_runtime_destroy(runtimes_.back().handle);
        runtimes_.pop_back();
    }
    rmsp_runtime_destroy(nullptr);
}

void Session::runtime_texts()
{
    const OpenRuntime of = runtime();
    int count = -1;
    const bool counted = succeeded(rmsp_runtime_device_count(of.handle, &count));
    require(counted == (of.handle != nullptr) && counted == (count > 0), "devices were not counted");
    require(succeeded(rmsp_runtime_synchronize(of.handle)) == counted, "a runtime does not come to rest");
    const auto& [host, model] = hosts_.pick(in_);
    rmsp_options* const with = options();
    switch (in_.below(3)) {
        case 0:
            text([&](rmsp_text_format format, char** place) { return rmsp_runtime_devices(of.handle, format, place); });
            break;
        case 1:
            text([&](rmsp_text_format format, char** place) {
                return rmsp_runtime_plan(of.handle, host, with, format, place);
            });
            break;
        default: {
            char* transport = nullptr;
            require(succeeded(rmsp_runtime_transport(of.handle, &transport)) == counted, "no transport");
            rmsp_free(transport);
        }
    }
}

void Session::destroy()
{
    switch (in_.below(9)) {
        case 0:
            return options_.drop(in_);
        case 1:
            return hosts_.drop(in_);
        case 2:
            return matrices_.drop(in_);
        case 3:
            return vectors_.drop(in_);
        case 4:
            return products_.drop(in_);
        case 5:
            return solvers_.drop(in_);
        case 6:
            return results_.drop(in_);
        case 7:
            return eigens_.drop(in_);
        default:
            return futures_.drop(in_);
    }
}

void Session::run()
{
    static constexpr void (Session::*functions[])() = {
        &Session::options_create,
        &Session::options_set,
        &Session::options_set,
        &Session::matrix_create,
        &Session::matrix_create,
        &Session::matrix_create,
        &Session::matrix_apply,
        &Session::matrix_apply,
        &Session::matrix_apply,
        &Session::host_matrix_create,
        &Session::host_matrix_create,
        &Session::host_matrix_convert,
        &Session::matrix_create_of_host,
        &Session::matrix_create_blocks,
        &Session::matrix_generate,
        &Session::vector_create,
        &Session::vector_create,
        &Session::vector_upload,
        &Session::vector_download,
        &Session::vector_one,
        &Session::vector_two,
        &Session::matrix_apply_vectors,
        &Session::matrix_apply_vectors,
        &Session::matrix_update_values,
        &Session::matrix_update_values,
        &Session::matrix_download,
        &Session::matrix_transfer,
        &Session::matrix_diagonal,
        &Session::matrix_measure,
        &Session::matrix_texts,
        &Session::matrix_size,
        &Session::matrix_on_stream,
        &Session::future_wait,
        &Session::product_create,
        &Session::product_create,
        &Session::product_create_resident,
        &Session::product_compute,
        &Session::product_compute,
        &Session::product_update,
        &Session::product_download,
        &Session::product_to_matrix,
        &Session::solver_create,
        &Session::solver_solve,
        &Session::solver_solve,
        &Session::solver_solve_vectors,
        &Session::result_read,
        &Session::eigen_solve,
        &Session::eigen_read,
        &Session::destroy,
        &Session::destroy,
        &Session::host_matrix_contents,
        &Session::host_matrix_read,
        &Session::host_matrix_write,
        &Session::vector_file,
        &Session::runtime_texts,
        &Session::options_text,
        &Session::lists,
        &Session::runtime_create,
        &Session::runtime_destroy,
    };
    constexpr int most_calls = 64;
    for (int call = 0; call < most_calls && in_.more(); ++call) {
        (this->*in_.one_of(functions))();
    }
}

}  // namespace rmsp::fuzz
