#include "runtime/matrix/distribute.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "runtime/matrix/balance.hpp"
#include "runtime/matrix/part_columns.hpp"
#include "runtime/matrix/place_source.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/matrix/row_product.hpp"
#include "runtime/matrix/upload.hpp"
#include "runtime/plan/placed_bytes.hpp"
#include "runtime/plan/plan_exchange.hpp"
#include "runtime/plan/planner.hpp"

namespace rmsp::distributed {
namespace {

/// The arrays of a streamed matrix, locked by one worker for all devices.
template <class T>
std::unique_ptr<StreamSource<T>> lock_source(RuntimeState& runtime, const plan::Stored<T>& a, bool pin)
{
    std::unique_ptr<StreamSource<T>> source;
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous&) {
            if (worker.rank() == 0) {
                source = std::make_unique<StreamSource<T>>(runtime.locked, worker.device(), a, pin);
            }
        })
        .get();
    return source;
}

/// What the links carry of an encoded matrix: in the plan, and a line of the report.
template <class T>
void describe_encoding(MatrixState<T>& matrix)
{
    std::int64_t raw = 0;
    std::int64_t sent = 0;
    std::int64_t kept = 0;
    bool refused = false;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < matrix.shards.size(); ++i) {
        const auto& part = matrix.shards[i]->streamed;
        ShardPlan& plan = matrix.plan.shards[i];
        raw += plan.apply_bytes;
        sent += part->link_bytes();
        kept += part->encoded_bytes();
        refused = refused || part->encode_refused();
        seconds.push_back(part->encode_seconds());
        plan.matrix_bytes = part->link_bytes();
        plan.apply_bytes = part->link_bytes();
    }
    matrix.record.raw_bytes = raw;
    matrix.record.setup.push_back({"encode", seconds, true});
    const double nonzeros = std::max(1.0, static_cast<double>(matrix.plan.nnz));
    matrix.record.notes.push_back(fmt::format(
        "encoded: {:.2f} bytes a nonzero over the links instead of {:.2f}, and {:.1f} MB of page-locked host "
        "memory",
        static_cast<double>(sent) / nonzeros, static_cast<double>(raw) / nonzeros, static_cast<double>(kept) * 1e-6));
    if (refused) {
        matrix.record.notes.push_back(
            "the system refused page-locked memory for encoded pieces: they are copied as they are");
    }
}

/// Plans the worker's part, which is on its device, by what its columns and rows are there.
template <class T>
void examine_part(MatrixState<T>& matrix, engine::Worker& worker, const plan::Stored<T>& a)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const Shard<T>& shard = *matrix.shards[rank];
    PartColumns columns(worker, shard.owned.col_idx, shard.part.start_idx);
    plan::plan_shard(matrix.plan.shards[rank], matrix.plan, *matrix.runtime, a, matrix.options, columns,
                     &shard.statistics);
}

/// Splits A, by `weights` as make_plan() does, copies each part to its device and makes its kernel ready.
template <class T>
std::shared_ptr<MatrixState<T>> distribute_parts(const std::shared_ptr<RuntimeState>& runtime,
                                                 const plan::Stored<T>& given, const DistributeOptions& options,
                                                 const std::vector<double>& weights)
{
    runtime->require_live();
    const auto start = core::Clock::now();

    const int devices = runtime->devices();
    auto matrix = std::make_shared<MatrixState<T>>(devices);
    matrix->runtime = runtime;
    matrix->options = options;
    matrix->origin.coordinates = given.coordinates;
    matrix->origin.devices = given.from_devices();
    matrix->options.progress = {};
    double split = 0;
    matrix->plan = given.columns_on_devices ? plan::begin_plan(*runtime, given, options, weights, &split)
                                            : plan::make_plan(*runtime, given, options, weights, &split);
    const double planned = core::seconds_since(start);
    matrix->record.setup.push_back({"partition", {split}, true});
    if (!given.columns_on_devices) {
        matrix->record.setup.push_back({"examine", {planned - split}, true});
    }
    if (options.progress) {
        options.progress("partition", 1.0);
    }

    const engine::Placing placing(
        runtime->admit(options.name.empty() ? "the matrix" : fmt::format("the matrix \"{}\"", options.name),
                       plan::placed_bytes(matrix->plan, given, options, runtime->shared_memory(),
                                          runtime->connection.transport.get())));
    const plan::Stored<T> a = options.mode == Mode::streamed ? place_source(*matrix, given) : given;
    if (a.resident != nullptr) {
        a.resident->split(matrix->plan.partition);
    }
    if (options.mode == Mode::streamed) {
        const auto begin = core::Clock::now();
        matrix->origin.source = lock_source(*runtime, a, options.pin);
        if (!runtime->shared_memory()) {
            matrix->record.setup.push_back({"page-lock", {core::seconds_since(begin)}, true});
        }
        if (matrix->origin.source->refused()) {
            matrix->record.notes.push_back(
                "the system refused to page-lock the whole matrix: what is not goes to the GPUs through "
                "pinned buffers, which is slower");
        }
    }

    std::vector<double> upload(static_cast<std::size_t>(devices));
    std::vector<double> examine(static_cast<std::size_t>(devices));
    double total_bytes = static_cast<double>(a.nnz) * (sizeof(T) + sizeof(std::int32_t));
    UploadProgress progress(options.progress, total_bytes);
    engine::JobTerms terms;
    terms.kind = "upload of a matrix";
    terms.matrix = &matrix->options.name;
    runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                const auto begin = core::Clock::now();
                build_shard(*matrix, worker, meeting, a, progress);
                const auto rank = static_cast<std::size_t>(worker.rank());
                upload[rank] = core::seconds_since(begin);
                if (a.columns_on_devices) {
                    examine_part(*matrix, worker, a);
                    examine[rank] = core::seconds_since(begin) - upload[rank];
                }
            },
            {}, terms)
        .get();
    if (!matrix->origin.source) {
        matrix->record.setup.push_back({"upload", upload, true});
    }
    if (a.columns_on_devices) {
        matrix->record.setup.push_back({"examine", examine, true});
        plan::finish_plan<T>(matrix->plan, *runtime, options);
    }
    matrix->rows = plan::row_side(matrix->plan);
    matrix->columns = plan::column_side(matrix->plan);
    matrix->columns.slices = plan::column_slices(matrix->plan, a);
    for (const bool of_transpose : {false, true}) {
        if (plan::multiplies_by_rows(matrix->plan, of_transpose)) {
            matrix->products[of_transpose ? 1 : 0] = std::make_shared<RowProduct<T>>(*matrix);
        }
    }
    RowProduct<T>* const by_rows = plan::multiplies_by_rows(matrix->plan, false) ? row_product(*matrix) : nullptr;
    if (by_rows != nullptr && by_rows->exchanges() && plan::may_number_anew(a.format, options) &&
        (options.exchange == Exchange::entries ||
         (options.exchange == Exchange::automatic && options.x_layout == Layout::rows &&
          runtime->connection.transport))) {
        const auto begin = core::Clock::now();
        by_rows->choose_exchange(options.exchange);
        matrix->record.setup.push_back({"exchange", {core::seconds_since(begin)}, true});
    }
    const auto prepared = core::Clock::now();
    prepare_apply(*matrix, false);
    if (options.transposed) {
        prepare_apply(*matrix, true);
    }
    matrix->record.setup.push_back(
        {"prepare", std::vector<double>(static_cast<std::size_t>(devices), core::seconds_since(prepared)), true});
    if (matrix->origin.source && !runtime->shared_memory() && !a.coordinates &&
        options.encoding != StreamEncoding::none) {
        describe_encoding(*matrix);
    }
    return matrix;
}

}  // namespace

template <class T>
std::shared_ptr<MatrixState<T>> distribute(const std::shared_ptr<RuntimeState>& runtime, const plan::Stored<T>& a,
                                           const DistributeOptions& options)
{
    const auto start = core::Clock::now();
    const auto by_weights = [&](const std::vector<double>& weights) {
        return distribute_parts(runtime, a, options, weights);
    };
    auto matrix = by_weights({});
    return balance_time<T>(std::move(matrix), options, start, by_weights);
}

#define RMSP_INSTANTIATE(T)                                                                                           \
    template std::shared_ptr<MatrixState<T>> distribute(const std::shared_ptr<RuntimeState>&, const plan::Stored<T>&, \
                                                        const DistributeOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
