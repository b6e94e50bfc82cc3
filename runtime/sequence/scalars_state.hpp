#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <kernels/steps/pass/pass.hpp>
#include <rmsp/sequence.hpp>

#include "runtime/engine/hand_over.hpp"
#include "runtime/node/node.hpp"
#include "runtime/sequence/outside.hpp"

/// What a bank of scalars is on the devices, and how passes add their sums over them.
namespace rmsp::sequence {

/// One device's bank, and what its passes use.
struct BankEnd {
    kernels::DeviceArray<double> bank;
    kernels::DeviceArray<std::byte> workspace;
    kernels::DeviceArray<std::byte> lines;  ///< two sets of what the others leave here
    kernels::PassPlace place;
    const volatile std::uint64_t* given_up = nullptr;  ///< Transport::given_up(); null: `lines` are not used
    std::uint64_t job = 0;                             ///< the last one with sums over the devices,
    std::uint64_t waits = 0;                           ///< and how many it had so far
    /// Two sets of sums that are added over the processes on the devices: its own, then those of all devices.
    kernels::DeviceArray<double> gathered;
    int gathered_from = 0;                 ///< so many devices
    std::unique_ptr<engine::Event> left;   ///< its own are there, for a gathering beside other work,
    std::unique_ptr<engine::Event> there;  ///< which is done
    std::uint64_t sums = 0;                ///< since the bank was made, or a job failed: which set is used next
};

/// A pass's program of scalars.
struct PassProgram {
    const kernels::ScalarOp* program = nullptr;  ///< in the device's memory
    int ops = 0;
    int numbers = 0;      ///< of the bank, the first ones, that it has to do with
    bool beside = false;  ///< kernels::PassPlace::beside
};

/// What the devices have, which is freed on their workers.
struct Bank {
    explicit Bank(int workers, int devices)
        : ends(static_cast<std::size_t>(workers)), gathering(ends.size()), hand_over(devices)
    {
    }

    std::vector<BankEnd> ends;
    std::vector<DeviceArrays> gathering;  ///< each worker's own, of which the first one begins to gather
    engine::PinnedBuffer progress;  ///< the first device's. A copy in its stream would cost more than stores that pass
                                    ///< over the link
    engine::PinnedBuffer left;      ///< two sets of the devices' sums,
    engine::PinnedBuffer exact;     ///< and of exact ones
    engine::HandOver hand_over;
};

}  // namespace rmsp::sequence

namespace rmsp::detail {

struct ScalarsState {
    /// \param devices  the first ones, which have parts of the vectors; 0: all
    /// \param exact    inner products are summed without rounding, so that they do not depend on where vectors are cut
    ScalarsState(std::shared_ptr<RuntimeState> runtime, int most, int devices, bool exact = false);
    ~ScalarsState();
    ScalarsState(const ScalarsState&) = delete;
    ScalarsState& operator=(const ScalarsState&) = delete;

    /// A number of the bank. \throws Error(usage) if there is no room
    std::int16_t make(double value);
    /// The number that holds a constant.
    std::int16_t constant(double value);
    /// A number for what lives no longer than a statement; all programs share them, since they run one after the other.
    std::int16_t temporary(std::size_t which);
    /// Brings numbers that were made since the last call to the devices. Queued, in order with sequences.
    void send_new();
    /// Writes numbers of every bank, from `first` on. Queued.
    void write(std::int16_t first, std::vector<double> values);
    /// Numbers of the first device's bank, after all that was queued before; blocks. \throws what a device threw
    std::vector<double> read(std::int16_t first, std::size_t count);
    /// After a job of a sequence failed: the devices' counts agree again.
    void recover();
    /// Queues one device's pass, whose sums over the devices begin. Returns where, for end().
    /// \param splits  work for the devices comes before end(), beside which sums are to go on
    template <class T>
    [[nodiscard]] kernels::PassPlace begin(const kernels::Pass<T>& pass, const sequence::PassProgram& program,
                                           bool splits, engine::Worker& worker, engine::Rendezvous& meeting);
    /// Queues what waits for the sums, and runs the program. Other arguments as begin() had them.
    template <class T>
    void end(const kernels::Pass<T>& pass, const kernels::PassPlace& place, bool splits, engine::Worker& worker,
             engine::Rendezvous& meeting);
    bool takes_part(int rank) const noexcept { return rank < devices; }

    std::shared_ptr<RuntimeState> runtime;
    const int most;
    const int devices;  ///< the first ones, which have parts of the vectors
    const bool exact;   ///< inner products are summed without rounding
    const std::shared_ptr<sequence::Bank> bank;
    engine::Tasks room;               ///< to free what it has
    std::atomic<bool> failed{false};  ///< a job of a sequence has, since recover()
    /// Null: the vectors are all here. Else inner products are summed over the processes as well, and whoever runs a
    /// sequence serves it.
    std::shared_ptr<sequence::Outside> outside;

    kernels::ScalarProgress& progress() const { return *static_cast<kernels::ScalarProgress*>(bank->progress.data()); }
    /// Passes do their work again; iterations count from `iterations` on. Queued.
    void restart(double iterations);

private:
    /// Adds the sums that the devices have left, and begins to add those of other processes.
    void begin_outside(int dots, const kernels::PassPlace& place, bool splits, engine::Worker& worker,
                       engine::Rendezvous& meeting);

    /// Begins to gather the sums of all devices of all processes.
    void begin_gathering(const kernels::PassPlace& place, int from, bool splits, engine::Worker& worker,
                         engine::Rendezvous& meeting);
    /// Whether begin() began that.
    static bool gathers(const sequence::BankEnd& end, const kernels::PassPlace& place);

    /// The first worker's: adds the exact sums of all devices and processes.
    void add_exactly(int dots, std::int64_t* sums);

    double processes_ = 0;  ///< how many there are; 0: nobody has asked
    bool lines_ = false;    ///< sums are added inside the kernels, through lines in each other's memory
    double outside_sums_[kernels::most_pass_dots] = {};  ///< the first worker's, of this process, then of all
    std::mutex mutex_;
    std::vector<double> values_;  ///< what numbers were made with
    std::size_t sent_ = 0;
    std::vector<std::pair<double, std::int16_t>> constants_;
    std::vector<std::int16_t> temporaries_;
};

}  // namespace rmsp::detail
