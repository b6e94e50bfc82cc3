#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rmsp/spgemm.hpp>

#include "runtime/spgemm/exchange.hpp"
#include "runtime/spgemm/pointer_exchange.hpp"
#include "runtime/spgemm/rows.hpp"
#include "runtime/spgemm/work.hpp"

/// What a product multiplies.
namespace rmsp::spgemm {

/// A matrix that is on the devices as a factor of a product: a product, or a distributed matrix. Each device has
/// consecutive rows.
template <class T>
class ResidentFactor {
public:
    virtual ~ResidentFactor() = default;
    ResidentFactor(const ResidentFactor&) = delete;
    ResidentFactor& operator=(const ResidentFactor&) = delete;

    /// Whether its entries are on the devices; else it was computed in runs, which are on the host.
    bool in_place() const noexcept { return !parts.empty(); }
    /// What the host has of it so far.
    CsrView<T> view() const;
    /// Brings row pointers to the host, and columns if they are asked for; of a product that was computed in runs all
    /// of it.
    void bring_structure(RuntimeState& runtime, bool columns);
    virtual void bring_all(RuntimeState& runtime) { bring(runtime, true, true); }
    /// Entries before each of these rows; of one that is in place. Blocks.
    std::vector<std::int64_t> entries_before(RuntimeState& runtime, const std::vector<std::int64_t>& rows) const;
    /// How often its values were renewed.
    /// \throws Error(usage) if it has none now
    virtual std::int64_t round() const = 0;
    /// Whether its values are those that were multiplied last, as far as can be seen.
    virtual bool unchanged() const { return round() == taken; }
    /// Of each device, a range in which its rows' columns are; empty: not known.
    virtual std::vector<transport::Range> touched_columns() const { return {}; }
    /// Before its values are used, if they were renewed. Every worker of the job calls it.
    virtual void refresh(engine::Worker& worker, engine::Rendezvous& meeting) = 0;
    /// The device has copied what it needs of it, and the others what they need of the device's part.
    virtual void let_go(engine::Worker& /*worker*/) {}
    /// Whether it may be gone once it was copied.
    virtual bool goes() const { return false; }

    std::vector<std::int64_t> first_rows;  ///< of each device, and the rows at the end
    std::vector<std::int64_t> slices;      ///< entries before those of each device, and all at the end
    std::vector<FactorPart<T>> parts;      ///< of each device; empty: not in place
    std::int64_t taken = 0;                ///< the round whose values were multiplied last

protected:
    ResidentFactor(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {}

    CsrMatrix<T> host_;  ///< as far as it was brought to the host

private:
    void bring(RuntimeState& runtime, bool columns, bool values);

    std::int64_t rows_;
    std::int64_t cols_;
};

/// \throws Error(usage) if a factor is on the devices of another runtime than the product; `name` says which factor it
/// is
void check_runtime(const RuntimeState& of_factor, const RuntimeState& of_product, const char* name);

/// The factors of a product, how its devices get them, and how they are multiplied.
template <class T>
struct Factors {
    CsrView<T> a;  ///< the caller's, or of resident_a; read after construction by parts in runs only
    CsrView<T> b;  ///< the caller's, or of resident_b; read after construction by parts in runs only
    std::unique_ptr<ResidentFactor<T>> resident_a;  ///< null: A is in the caller's arrays
    std::unique_ptr<ResidentFactor<T>> resident_b;  ///< null: B is in the caller's arrays
    std::shared_ptr<EntryExchange> exchange;        ///< null: B came from the host, to each device all that it needs
    std::unique_ptr<PointerExchange> pointers;      ///< of B's rows; null: from the host
    RowWork work;                                   ///< count_work(); not known: in place
    /// The devices have both factors and multiply them where they are: the host has nothing of them.
    bool in_place = false;
    SpgemmOptions options;
};

}  // namespace rmsp::spgemm
