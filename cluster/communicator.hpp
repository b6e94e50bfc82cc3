#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rmsp/cluster.hpp>
#include <rmsp/device_link.hpp>
#include <rmsp/error.hpp>
#include <rmsp/ghosted.hpp>

#include "cluster/node.hpp"

namespace rmsp::cluster {

/// An error that all processes have heard of, and throw.
class Agreed : public Error {
public:
    using Error::Error;
};

/// ClusterOptions::node_messages.
enum class NodeMessagesChoice : std::uint8_t { automatic, direct, gathered };

/// What a round of the processes is for: in each round all are for the same.
enum class Round : std::uint32_t { agree, sum, first, sizes, lengths };
const char* name_of(Round round);

/// A copy of the caller's communicator, whose every wait ends: with what was waited for, with the error of another
/// process, or with the time. Everything is said in rounds, in which each process hears a line of each other, and in
/// messages between two; a process that fails says so in its next round, after it has woken those that wait for a
/// message.
class Communicator final : public LinkedProcesses, public std::enable_shared_from_this<Communicator> {
public:
    /// Collective. \throws Error
    Communicator(MPI_Comm communicator, const ClusterOptions& options);
    ~Communicator() override;
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    /// Not once a process was waited for in vain, or has ended.
    bool usable() const noexcept { return lost_.empty(); }
    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return size_; }

    void sum(std::span<double> numbers) override;
    /// A round of its own, beside which there may be messages.
    void begin_sum(std::span<double> numbers) override;
    int gathers_on_devices() const override { return gathers_ && link_->usable() ? first_devices_.back() : 0; }
    void gather_on(std::span<const DeviceArrays> devices, std::size_t count) override;
    void settle() override;
    void end_sum() override;
    void progress() override;
    double of_first(double value) override;
    bool on_workers() const override { return on_workers_; }
    std::vector<std::vector<std::byte>> bring(std::vector<std::vector<std::byte>> to) override;
    std::shared_ptr<GhostExchange> exchange(const std::vector<GhostNeighbour>& receives,
                                            const std::vector<GhostNeighbour>& sends, std::size_t entry_bytes) override;
    const Node& node() const noexcept { return *node_; }
    /// The number of each process's node, from 0 in the order of the processes.
    const std::vector<int>& node_of() const noexcept { return node_of_; }
    NodeMessagesChoice node_messages() const noexcept { return node_messages_; }

    /// f() on each process, after which all know that none has failed. \throws what one has thrown
    void together(const std::function<void()>& f);
    /// f(), which has rounds or messages of its own. \throws what it has thrown, and all processes hear of it
    void guarded(const std::function<void()>& f);
    /// The numbers, at most 8, of each process in turn, 8 places each.
    std::vector<std::int64_t> numbers_of_all(std::span<const std::int64_t> numbers);
    /// A number for each process, from each process.
    std::vector<std::int64_t> exchange_counts(const std::vector<std::int64_t>& counts);

    /// The tag of the next exchange of messages.
    int next_tag() noexcept { return 1 + static_cast<int>(exchanges_++ % 16384); }
    MPI_Comm handle() const noexcept { return communicator_; }
    /// Waits for messages, as wait_for(); those left where it throws are given up.
    void wait(std::vector<MPI_Request>& requests, double seconds = 0);
    /// Waits for something else that other processes bring.
    /// \param leave    ends what is waited for, before an error is spoken of to the others
    /// \param seconds  0: as long as for everything; else an error after that time is this process's alone, and nothing
    ///                 is lost
    void wait_for(const std::function<bool()>& done, const char* what, const std::function<void()>& leave,
                  double seconds = 0);
    double timeout_seconds() const noexcept { return timeout_; }

    /// How entries travel, once it is known.
    const ClusterTransport& transport() const noexcept { return transport_; }
    /// \param first_devices  number of each process's first GPU in the link, and of all
    /// \param gathers        sums of solvers go over the link: processes have equally many GPUs, and workers that speak
    void set_transport(ClusterTransport transport, std::shared_ptr<DeviceLink> link, std::vector<int> first_devices,
                       bool gathers)
    {
        transport_ = std::move(transport);
        link_ = std::move(link);
        first_devices_ = std::move(first_devices);
        gathers_ = link_ != nullptr && gathers;
    }
    int first_device() const { return first_devices_[static_cast<std::size_t>(rank_)]; }
    /// Of the processes' GPUs; null: entries travel through host memory. May be given up, by all processes alike.
    const std::shared_ptr<DeviceLink>& link() const noexcept { return link_; }
    /// Whether something is under way there.
    void set_linking(bool linking) noexcept { linking_ = linking; }

    /// Of messages that nobody waits for any more.
    static void give_up(std::vector<MPI_Request>& requests) noexcept;
    /// Whether all is there.
    bool test(std::vector<MPI_Request>& requests);
    void check(int status, const char* what) const;
    /// Keeps memory that messages which were given up may read still.
    void keep(std::vector<std::byte> memory) { kept_.push_back(std::move(memory)); }

private:
    struct Line {
        Round round = Round::agree;
        std::uint32_t failed = 0;  ///< 1: and has woken the others
        std::uint64_t exchanges = 0;
        std::int64_t numbers[8] = {};
    };

    /// \throws Agreed if a process has failed, or is in another round
    const std::vector<Line>& round(Line line);
    void exchange_lines(const Line& line);
    void begin_lines(const Line& line);
    /// The lines that were exchanged. \throws Agreed if one says that its process has failed, or is in another round
    const std::vector<Line>& checked_lines();
    /// Whether all lines of the round that has begun are there.
    bool lines_are_there();
    /// Waits for a sum that has begun, if one has, and gives it up. Returns whether a process has failed in it.
    bool failed_in_sum();
    /// Waits for one operation; \throws Error(device) after the time.
    void finish(MPI_Request& request, const char* what);
    /// All processes are here. \throws Agreed, always
    [[noreturn]] void throw_failures(ErrorCode code, std::string_view text);
    [[noreturn]] void fail(const std::exception& error);
    /// Whether another process has failed in this call or in one before. One that has failed in a call behind it has
    /// done its part in this one.
    bool others_failed();
    /// \throws Agreed if a process of this node is not there any more; those of other nodes are not seen
    void require_others(const char* what);
    /// Nothing more can be said to the others; what the devices do together is given up. \throws Agreed, always
    [[noreturn]] void lose(std::string why);
    /// Lets others have the core between two looks.
    void rest();
    void require_usable() const;
    void number_nodes(const ClusterOptions& options);
    void give_up_link();

    MPI_Comm communicator_ = MPI_COMM_NULL;
    const double timeout_;
    bool on_workers_ = false;
    std::optional<Node> node_;
    std::vector<int> node_of_;
    const NodeMessagesChoice node_messages_;
    std::chrono::steady_clock::time_point cores_shared_until_{};
    int rank_ = 0;
    int size_ = 1;
    Line line_;  ///< of this process in the round that has begun last
    std::vector<Line> lines_;
    MPI_Request lines_request_ = MPI_REQUEST_NULL;
    std::optional<std::span<double>> begun_sum_;
    std::uint64_t exchanges_ = 0;
    std::uint64_t calls_ = 0;               ///< that have begun, the same on all processes
    std::vector<std::uint64_t> alarms_;     ///< in which call each process has failed; 0: no alarm is here
    std::array<std::uint64_t, 2> alarm_{};  ///< of this process, which may be on its way still: of its failures in turn
    std::size_t failures_ = 0;              ///< of this process
    ClusterTransport transport_;
    std::shared_ptr<DeviceLink> link_;
    bool linking_ = false;
    std::vector<int> first_devices_;
    bool gathers_ = false;
    std::string lost_;  ///< why nothing more can be said
    std::vector<std::vector<std::byte>> kept_;
};

}  // namespace rmsp::cluster
