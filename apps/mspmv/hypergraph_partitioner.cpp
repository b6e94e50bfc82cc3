#include "apps/mspmv/hypergraph_partitioner.hpp"

#include <fmt/format.h>

#include <rmsp/error.hpp>

#ifdef RMSP_HAVE_ZOLTAN
#include <cstdlib>
#include <numeric>
#include <vector>

#include <zoltan.h>
#endif

namespace rmsp::mspmv {
#ifdef RMSP_HAVE_ZOLTAN
namespace {

void require(bool good, const char* what)
{
    if (!good) {
        throw Error(ErrorCode::internal, fmt::format("Zoltan failed: {}", what));
    }
}

/// Zoltan needs MPI, here of this process alone: without messages, whatever networks there are.
class Mpi {
public:
    Mpi()
    {
        ::setenv("OMPI_MCA_btl", "self", 0);
        ::setenv("OMPI_MCA_btl_base_warn_component_unused", "0", 0);
        float version = 0;
        require(Zoltan_Initialize(0, nullptr, &version) == ZOLTAN_OK, "Zoltan_Initialize");
    }
    ~Mpi() { MPI_Finalize(); }
    Mpi(const Mpi&) = delete;
    Mpi& operator=(const Mpi&) = delete;
};

int count_vertices(void* data, int* error)
{
    *error = ZOLTAN_OK;
    return static_cast<int>(static_cast<const Hypergraph*>(data)->vertices());
}

void list_vertices(void* data, int, int, ZOLTAN_ID_PTR global, ZOLTAN_ID_PTR local, int, float* weights, int* error)
{
    const auto& graph = *static_cast<const Hypergraph*>(data);
    for (std::size_t v = 0; v < graph.vertex_weight.size(); ++v) {
        global[v] = local[v] = static_cast<ZOLTAN_ID_TYPE>(v);
        weights[v] = static_cast<float>(graph.vertex_weight[v]);
    }
    *error = ZOLTAN_OK;
}

void size_nets(void* data, int* nets, int* pins, int* format, int* error)
{
    const auto& graph = *static_cast<const Hypergraph*>(data);
    *nets = static_cast<int>(graph.nets());
    *pins = static_cast<int>(graph.pins.size());
    *format = ZOLTAN_COMPRESSED_EDGE;
    *error = ZOLTAN_OK;
}

void list_nets(void* data, int, int, int, int, ZOLTAN_ID_PTR nets, int* first_pin, ZOLTAN_ID_PTR pins, int* error)
{
    const auto& graph = *static_cast<const Hypergraph*>(data);
    for (std::size_t n = 0; n + 1 < graph.net_ptr.size(); ++n) {
        nets[n] = static_cast<ZOLTAN_ID_TYPE>(n);
        first_pin[n] = static_cast<int>(graph.net_ptr[n]);
    }
    for (std::size_t p = 0; p < graph.pins.size(); ++p) {
        pins[p] = static_cast<ZOLTAN_ID_TYPE>(graph.pins[p]);
    }
    *error = ZOLTAN_OK;
}

void size_weights(void* data, int* nets, int* error)
{
    *nets = static_cast<int>(static_cast<const Hypergraph*>(data)->net_weight.size());
    *error = ZOLTAN_OK;
}

void list_weights(void* data, int, int, int, int, ZOLTAN_ID_PTR global, ZOLTAN_ID_PTR local, float* weights, int* error)
{
    const auto& graph = *static_cast<const Hypergraph*>(data);
    for (std::size_t n = 0; n < graph.net_weight.size(); ++n) {
        global[n] = local[n] = static_cast<ZOLTAN_ID_TYPE>(n);
        weights[n] = static_cast<float>(graph.net_weight[n]);
    }
    *error = ZOLTAN_OK;
}

class Zoltan {
public:
    Zoltan() : handle_(Zoltan_Create(MPI_COMM_SELF)) { require(handle_ != nullptr, "Zoltan_Create"); }
    ~Zoltan() { Zoltan_Destroy(&handle_); }
    Zoltan(const Zoltan&) = delete;
    Zoltan& operator=(const Zoltan&) = delete;

    void set(const char* name, const std::string& value)
    {
        require(Zoltan_Set_Param(handle_, name, value.c_str()) == ZOLTAN_OK, name);
    }

    std::vector<std::int32_t> partition(const Hypergraph& graph, std::int32_t parts)
    {
        set("DEBUG_LEVEL", "0");
        set("LB_METHOD", "HYPERGRAPH");
        set("HYPERGRAPH_PACKAGE", "PHG");
        set("LB_APPROACH", "PARTITION");
        set("RETURN_LISTS", "PARTS");
        set("OBJ_WEIGHT_DIM", "1");
        set("EDGE_WEIGHT_DIM", graph.net_weight.empty() ? "0" : "1");
        set("NUM_GLOBAL_PARTS", fmt::format("{}", parts));
        set("IMBALANCE_TOL", "1.05");
        auto* data = const_cast<Hypergraph*>(&graph);  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
        Zoltan_Set_Num_Obj_Fn(handle_, count_vertices, data);
        Zoltan_Set_Obj_List_Fn(handle_, list_vertices, data);
        Zoltan_Set_HG_Size_CS_Fn(handle_, size_nets, data);
        Zoltan_Set_HG_CS_Fn(handle_, list_nets, data);
        if (!graph.net_weight.empty()) {
            Zoltan_Set_HG_Size_Edge_Wts_Fn(handle_, size_weights, data);
            Zoltan_Set_HG_Edge_Wts_Fn(handle_, list_weights, data);
        }
        int changed = 0;
        int ids = 0;
        int local_ids = 0;
        int imports = 0;
        int exports = 0;
        ZOLTAN_ID_PTR import_global = nullptr;
        ZOLTAN_ID_PTR import_local = nullptr;
        ZOLTAN_ID_PTR export_global = nullptr;
        ZOLTAN_ID_PTR export_local = nullptr;
        int* import_process = nullptr;
        int* import_part = nullptr;
        int* export_process = nullptr;
        int* export_part = nullptr;
        const int status = Zoltan_LB_Partition(handle_, &changed, &ids, &local_ids, &imports, &import_global,
                                               &import_local, &import_process, &import_part, &exports, &export_global,
                                               &export_local, &export_process, &export_part);
        std::vector<std::int32_t> out(static_cast<std::size_t>(graph.vertices()), 0);
        for (int i = 0; i < exports; ++i) {
            out[export_global[i]] = export_part[i];
        }
        Zoltan_LB_Free_Part(&import_global, &import_local, &import_process, &import_part);
        Zoltan_LB_Free_Part(&export_global, &export_local, &export_process, &export_part);
        require(status == ZOLTAN_OK || status == ZOLTAN_WARN, "Zoltan_LB_Partition");
        return out;
    }

private:
    Zoltan_Struct* handle_;
};

std::vector<std::int32_t> zoltan_partition(const Hypergraph& graph, std::int32_t parts)
{
    static const Mpi mpi;
    return Zoltan().partition(graph, parts);
}

}  // namespace

constexpr bool have_zoltan = true;
HypergraphPartitioner zoltan() { return {fmt::format("Zoltan PHG {:.2f}", ZOLTAN_VERSION_NUMBER), zoltan_partition}; }
#else
constexpr bool have_zoltan = false;
HypergraphPartitioner zoltan() { return {}; }
#endif

HypergraphPartitioner hypergraph_partitioner(const std::string& name)
{
    if (name == "greedy" || (name == "auto" && !have_zoltan)) {
        return greedy_partitioner();
    }
    if (name == "auto" || (name == "zoltan" && have_zoltan)) {
        return zoltan();
    }
    throw Error(ErrorCode::usage, name == "zoltan"
                                      ? std::string("this build is without Zoltan (RMSP_ZOLTAN)")
                                      : fmt::format("\"{}\" is no partitioner: auto, zoltan, greedy", name));
}

}  // namespace rmsp::mspmv
