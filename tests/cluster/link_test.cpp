#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rmsp/device_link.hpp>

#include "cluster/communicator.hpp"
#include "cluster/halo.hpp"
#include "cluster/message_link.hpp"
#include "cluster/transport.hpp"
#include "tests/cluster/matrices.hpp"

// How entries travel between processes: which way is taken and why, and, with a link of host devices that stands in for
// NCCL's, what a product does with it and where it goes on once the link is given up.
namespace rmsp::test {
namespace {

using cluster::Communicator;

/// What DeviceLink promises, by messages of MPI in host memory. Host devices have done what was queued on them when
/// that returns; so has this link what is begun.
class HostLink final : public DeviceLink {
public:
    HostLink(Communicator& processes, int devices) : processes_(processes), devices_(devices) {}

    void begin(std::span<const DeviceArrays> devices, std::span<const LinkMessages> to,
               std::span<const LinkMessages> from, std::size_t entry_bytes) override
    {
        ++begun;
        const auto bytes = [&](std::int64_t entries) {
            return static_cast<int>(entries * static_cast<std::int64_t>(entry_bytes));
        };
        // Of a pair of devices in two processes; no other message has such a one.
        const auto tag = [&](int sender, int receiver) {
            return 20000 + sender % devices_ * devices_ + receiver % devices_;
        };
        for (std::size_t i = 0; i < devices.size(); ++i) {
            const int own = processes_.rank() * devices_ + static_cast<int>(i);
            for (const LinkMessage& other : from[i]) {
                MPI_Irecv(static_cast<std::byte*>(devices[i].to) + bytes(other.first), bytes(other.count), MPI_BYTE,
                          other.gpu / devices_, tag(other.gpu, own), processes_.handle(), &requests_.emplace_back());
            }
            for (const LinkMessage& other : to[i]) {
                MPI_Isend(static_cast<const std::byte*>(devices[i].from) + bytes(other.first), bytes(other.count),
                          MPI_BYTE, other.gpu / devices_, tag(own, other.gpu), processes_.handle(),
                          &requests_.emplace_back());
            }
        }
        finish();
    }
    void end() override { ++ended; }
    void gather(std::span<const DeviceArrays> devices, std::size_t bytes) override
    {
        ++gathered;
        std::vector<std::byte> own;
        for (const DeviceArrays& of : devices) {
            const auto* const from = static_cast<const std::byte*>(of.from);
            own.insert(own.end(), from, from + bytes);
        }
        std::vector<std::byte> all(own.size() * static_cast<std::size_t>(processes_.size()));
        const int count = static_cast<int>(own.size());
        MPI_Iallgather(own.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, processes_.handle(),
                       &requests_.emplace_back());
        finish();
        for (const DeviceArrays& of : devices) {
            std::memcpy(of.to, all.data(), all.size());
        }
    }
    void copy(int /*device*/, void* /*stream*/, void* to, const void* from, std::size_t bytes) override
    {
        if (bytes > 0) {
            std::memcpy(to, from, bytes);
        }
    }
    void give_up() noexcept override
    {
        Communicator::give_up(requests_);
        usable_ = false;
    }
    bool usable() const noexcept override { return usable_; }

    int begun = 0;
    int gathered = 0;
    int ended = 0;

private:
    void finish()
    {
        try {
            processes_.wait_for([&] { return processes_.test(requests_); }, "entries of x", [] {});
        } catch (...) {
            give_up();
            throw;
        }
        requests_.clear();
    }

    Communicator& processes_;
    const int devices_;  ///< of each process
    std::vector<MPI_Request> requests_;
    bool usable_ = true;
};

/// How entries travel between the processes of a test: through memory of the host, by a link that stands in for NCCL's,
/// or by that of a GPU-aware MPI, to which memory of host devices is as good.
enum class Way { messages, stand_in, message_link };

/// A cluster, taken apart: its processes, this one's devices, and rows of a matrix.
struct Apart {
    explicit Apart(Way way, const char* devices = "host:2", double skew = 0.25)
        : Apart(way, devices, grid<double>(9, 20, skew))
    {
    }
    Apart(Way way, const char* devices, Whole<double> of, const DistributeOptions& options = {})
        : whole(std::move(of)),
          processes(std::make_shared<Communicator>(MPI_COMM_WORLD, ClusterOptions{.timeout_seconds = 20})),
          runtime({.devices = devices, .bind = BindPolicy::none}),
          part(part_of(whole, uneven(whole.rows, processes->size()), processes->rank()))
    {
        if (way != Way::messages) {
            const auto devices_here = static_cast<int>(runtime.devices().size());
            std::vector<int> first_devices;
            for (int p = 0; p <= processes->size(); ++p) {
                first_devices.push_back(p * devices_here);
            }
            if (way == Way::stand_in) {
                link = std::make_shared<HostLink>(*processes, devices_here);
                processes->set_transport({"nccl", "a test"}, link, first_devices, processes->on_workers());
            } else {
                message_link =
                    std::make_shared<cluster::MessageLink>(*processes, open_device_access(runtime), first_devices);
                processes->set_transport({"gpu-aware-mpi", "a test"}, message_link, first_devices, false);
            }
        }
        const std::vector<std::int64_t> columns = uneven(whole.rows, processes->size());
        IndexArray numbered;
        const cluster::Halo halo = part.view.col_idx.visit([&](const auto* col_idx) {
            return cluster::find_halo(*processes, columns, col_idx, part.view.nnz, numbered);
        });
        numbers = {columns, halo.ghosts};
        GhostedRows<double> rows;
        const std::int64_t own = part.end - part.first;
        rows.rows = {own,
                     own + static_cast<std::int64_t>(halo.ghosts.size()),
                     part.view.nnz,
                     part.view.row_ptr,
                     numbered.view(),
                     part.view.values};
        rows.own_cols = own;
        rows.first_row = part.first;
        rows.sent = halo.sent;
        rows.exchange = processes->exchange(halo.receives, halo.sends, sizeof(double));
        rows.processes = processes;
        exchange = std::dynamic_pointer_cast<cluster::HaloExchange>(rows.exchange);
        matrix = GhostedMatrix<double>(runtime, rows, options);
    }

    /// This process's entries of 2 A x - y / 2, or of A^T.
    std::vector<double> product(bool of_transpose)
    {
        auto x = matrix.own().make_x(Layout::rows);
        auto y = matrix.own().make_y();
        const auto own = [&](double seed) { return slice(entries<double>(whole.rows, seed), part.first, part.end); };
        x.upload(own(1).data());
        y.upload(own(2).data());
        processes->guarded([&] {
            if (of_transpose) {
                matrix.apply_transposed(2, y, -0.5, x);
            } else {
                matrix.apply(2, x, -0.5, y);
            }
        });
        std::vector<double> found(static_cast<std::size_t>(part.end - part.first));
        (of_transpose ? x : y).download(found.data());
        return found;
    }
    std::vector<double> wanted(bool of_transpose) const
    {
        const auto x = entries<double>(whole.rows, 1);
        const auto y = entries<double>(whole.rows, 2);
        return slice(of_transpose ? whole.product(2, y, -0.5, x, true) : whole.product(2, x, -0.5, y, false),
                     part.first, part.end);
    }
    void expect_products()
    {
        for (const bool of_transpose : {false, true}) {
            const std::vector<double> found = product(of_transpose);
            const std::vector<double> right = wanted(of_transpose);
            for (std::size_t i = 0; i < found.size(); ++i) {
                ASSERT_NEAR(found[i], right[i], 1e-12) << "entry " << i << (of_transpose ? " of A^T x" : "");
            }
        }
    }

    const Whole<double> whole;
    std::shared_ptr<Communicator> processes;
    Runtime runtime;
    Part<double> part;
    std::shared_ptr<HostLink> link;
    std::shared_ptr<cluster::MessageLink> message_link;
    std::shared_ptr<cluster::HaloExchange> exchange;
    GhostedMatrix<double> matrix;
    GhostedNumbers numbers;
};

void expect_bits_of_messages(Way way, const char* devices, const Whole<double>& whole)
{
    SCOPED_TRACE(testing::Message() << whole.rows << " rows on " << devices);
    DistributeOptions options;
    options.determinism = Determinism::run;
    Apart linked(way, devices, whole, options);
    Apart by_messages(Way::messages, devices, whole, options);
    linked.expect_products();
    by_messages.expect_products();
    EXPECT_EQ(linked.product(false), by_messages.product(false));
    const std::vector<double> found = linked.product(true);
    const std::vector<double> wanted = by_messages.product(true);
    // What three processes or more add to an entry is grouped by devices where it comes as messages.
    if (linked.runtime.devices().size() == 1 || linked.processes->size() < 3) {
        EXPECT_EQ(found, wanted);
    }
    EXPECT_EQ(linked.exchange->bytes_sent(), by_messages.exchange->bytes_sent());
}

TEST(ClusterLink, ProductsHaveTheBitsOfMessages)
{
    for (const char* devices : {"host:1", "host:3"}) {
        for (const auto& whole : {random<double>(300, 300, 5), rotation<double>(240, 77), random<double>(3, 3, 2)}) {
            expect_bits_of_messages(Way::stand_in, devices, whole);
            expect_bits_of_messages(Way::message_link, devices, whole);
        }
        Apart linked(Way::stand_in, devices);
        Apart by_messages(Way::messages, devices);
        EXPECT_TRUE(linked.exchange->on_devices());
        EXPECT_FALSE(by_messages.exchange->on_devices());
        linked.expect_products();
        EXPECT_EQ(linked.link->begun, 2);
        EXPECT_EQ(linked.link->ended, 2) << "a product returned before its exchange was there";
        by_messages.expect_products();
        for (const bool of_transpose : {false, true}) {
            EXPECT_EQ(linked.product(of_transpose), by_messages.product(of_transpose));
        }
        EXPECT_EQ(linked.exchange->bytes_sent(), by_messages.exchange->bytes_sent());
        EXPECT_EQ(linked.exchange->traffic().sends_to, by_messages.exchange->traffic().sends_to);
    }
}

/// What some iterations make of x; of the processes' rows of a symmetric matrix.
std::vector<double> iterate(Apart& apart, const char* method)
{
    SolverOptions options;
    options.method = method;
    options.tolerance = 0;
    options.max_iterations = 8;
    Solver<double> solver(apart.matrix, options);
    auto x = apart.matrix.own().make_x(Layout::rows);
    auto b = apart.matrix.own().make_y();
    b.upload(slice(entries<double>(apart.whole.rows, 1), apart.part.first, apart.part.end).data());
    x.fill(0);
    apart.processes->together([&] { EXPECT_EQ(solver.solve(b, x).iterations, options.max_iterations); });
    std::vector<double> found(static_cast<std::size_t>(apart.part.end - apart.part.first));
    x.download(found.data());
    return found;
}

/// Sums stay on the devices where workers speak ("serialized"); else, and once the link is given up, they are those of
/// messages.
TEST(ClusterLink, SolvesHaveTheBitsOfMessages)
{
    for (const auto& [method, devices] : {std::pair{"cg", "host:1"},
                                          {"cg", "host:2"},
                                          {"cg", "host:3"},
                                          {"cg_pipelined", "host:1"},
                                          {"cg_pipelined", "host:2"}}) {
        SCOPED_TRACE(testing::Message() << method << " on " << devices);
        Apart by_messages(Way::messages, devices, 0);
        const std::vector<double> right = iterate(by_messages, method);
        Apart linked(Way::stand_in, devices, 0);
        EXPECT_EQ(iterate(linked, method), right);
        const int gathered = linked.link->gathered;
        EXPECT_EQ(gathered > 0, linked.processes->on_workers());
        if (gathered > 0) {
            // At the end of what is queued as one: blocks of iterations, the start and the check of the residual.
            EXPECT_LT(linked.link->ended, linked.link->begun + gathered);
        }
        EXPECT_GT(linked.link->ended, 0);
        linked.link->give_up();
        EXPECT_EQ(iterate(linked, method), right);
        EXPECT_EQ(linked.link->gathered, gathered);
        Apart gpu_aware(Way::message_link, devices, 0);
        EXPECT_EQ(iterate(gpu_aware, method), right);
    }
}

/// Its levels are matrices whose entries travel over the link too.
TEST(ClusterLink, MultigridIsThatOfMessages)
{
    for (const char* name : {"amg", "sa-amg"}) {
        SCOPED_TRACE(name);
        std::vector<double> found[2];
        std::int64_t iterations[2] = {};
        for (const std::size_t linked : {std::size_t{0}, std::size_t{1}}) {
            Apart apart(linked == 1 ? Way::stand_in : Way::messages, "host:2", grid<double>(40, 30));
            apart.processes->together([&] {
                PreconditionerOptions options;
                options.multigrid.coarse_rows = 40;
                auto levels = make_preconditioner(apart.matrix, apart.numbers, apart.processes, name, options);
                Solver<double> solver(apart.matrix, {}, std::move(levels));
                auto x = apart.matrix.own().make_x(Layout::rows);
                auto b = apart.matrix.own().make_y();
                b.fill(1);
                x.fill(0);
                const SolveResult result = solver.solve(b, x);
                EXPECT_TRUE(result.converged()) << result.reason;
                iterations[linked] = result.iterations;
                found[linked].resize(static_cast<std::size_t>(apart.part.end - apart.part.first));
                x.download(found[linked].data());
            });
        }
        EXPECT_EQ(iterations[0], iterations[1]);
        for (std::size_t i = 0; i < found[0].size(); ++i) {
            ASSERT_NEAR(found[0][i], found[1][i], 1e-9 * (1 + std::abs(found[0][i]))) << "entry " << i;
        }
    }
}

TEST(ClusterLink, GoesOnByMessagesOnceItIsGivenUp)
{
    Apart apart(Way::stand_in);
    const auto before = apart.product(false);
    const std::int64_t bytes = apart.exchange->bytes_sent();
    // All of them, as after an error that all have heard of.
    apart.link->give_up();
    EXPECT_EQ(apart.product(false), before);
    apart.expect_products();
    EXPECT_EQ(apart.link->begun, 1);
    EXPECT_GE(apart.exchange->bytes_sent(), 3 * bytes);
}

TEST(ClusterLink, OfMessagesBringsWhatIsSent)
{
    for (const char* devices : {"host:1", "host:3"}) {
        Apart apart(Way::message_link, devices);
        const auto access = open_device_access(apart.runtime);
        const int here = access->devices();
        const LinkTest test{
            .first = apart.processes->rank() * here, .size = apart.processes->size() * here, .own_gpus = false};
        apart.processes->guarded([&] { test_device_link(*apart.message_link, *access, test); });
        EXPECT_TRUE(apart.message_link->usable());
        EXPECT_TRUE(apart.exchange->on_devices());
        EXPECT_FALSE(apart.exchange->in_stream_order());
        apart.expect_products();
        apart.message_link->give_up();
        apart.expect_products();
    }
}

void expect_given_up(Way way, const std::string& name)
{
    Apart apart(way);
    Communicator& processes = *apart.processes;
    const auto before = apart.product(false);
    // Who still waits for another process hears of the error below where it is.
    processes.together([] {});
    const bool last = processes.rank() + 1 == processes.size();
    std::string said;
    try {
        if (last) {
            processes.guarded([] { throw Error(ErrorCode::io, "the last one has no paper"); });
        } else {
            (void)apart.product(false);
            // A process without a neighbour that fails hears of it in its next call.
            processes.together([] {});
        }
    } catch (const Error& error) {
        said = error.what();
    }
    EXPECT_NE(said.find("the last one has no paper"), std::string::npos) << said;
    EXPECT_TRUE(processes.usable());
    EXPECT_EQ(apart.product(false), before);
    double usable = processes.link()->usable() ? 1 : 0;
    processes.sum({&usable, 1});
    EXPECT_EQ(usable, 0) << "of " << processes.size();
    EXPECT_EQ(processes.transport().name, "mpi");
    EXPECT_EQ(processes.transport().reason, name + " was given up after an error");
}

TEST(ClusterLink, IsGivenUpByAllWhereOneFailsWhileItIsAtWork)
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 1) {
        GTEST_SKIP() << "needs other processes";
    }
    expect_given_up(Way::stand_in, "nccl");
    expect_given_up(Way::message_link, "gpu-aware-mpi");
}

TEST(ClusterLink, StaysWhereAnErrorHasNothingToDoWithIt)
{
    Apart apart(Way::stand_in);
    Communicator& processes = *apart.processes;
    // Who still waits for another process hears of the error below where it is.
    processes.together([] {});
    try {
        processes.together([&] {
            if (processes.rank() + 1 == processes.size()) {
                throw Error(ErrorCode::io, "no paper");
            }
        });
        FAIL() << "nothing was thrown";
    } catch (const Error&) {
    }
    EXPECT_TRUE(apart.link->usable());
    EXPECT_EQ(processes.transport().name, "nccl");
    apart.expect_products();
}

TEST(ClusterTransports, MpiWhereThereAreNoGpus)
{
    for (const char* wanted : {"auto", "nccl", "gpu-aware-mpi", "mpi"}) {
        const Cluster cluster(MPI_COMM_WORLD, {.devices = "host:1", .bind = BindPolicy::none},
                              {.timeout_seconds = 20, .transport = wanted});
        EXPECT_EQ(cluster.transport().name, "mpi");
        const bool alone = cluster.size() == 1;
        const std::string no_nccl = alone ? "nccl: one process needs none" : "nccl: process 0: NCCL is for GPUs";
        const std::string no_memory =
            alone ? "gpu-aware-mpi: one process needs none" : "gpu-aware-mpi: process 0: it is for GPUs";
        const std::string name = wanted;
        EXPECT_EQ(cluster.transport().reason, name == "mpi"             ? "asked for"
                                              : name == "gpu-aware-mpi" ? no_memory
                                                                        : no_nccl + "; " + no_memory);
    }
}

TEST(ClusterTransports, BadOptionsAreRefused)
{
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto message = [](const std::string& transport) -> std::string {
        try {
            const Cluster cluster(MPI_COMM_WORLD, {.devices = "host:1", .bind = BindPolicy::none},
                                  {.timeout_seconds = 20, .transport = transport});
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::usage);
            return error.what();
        }
        return {};
    };
    EXPECT_EQ(message("pigeon"), "transport is \"pigeon\", it must be auto, nccl, gpu-aware-mpi or mpi");
    if (size > 1) {
        EXPECT_NE(message(rank + 1 == size ? "mpi" : "auto").find("transport differs"), std::string::npos);
    }
}

}  // namespace
}  // namespace rmsp::test
