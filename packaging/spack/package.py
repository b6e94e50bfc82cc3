"""librmsp for Spack: packages/librmsp/package.py of a repository of one's own."""

from spack.package import *


class Librmsp(CMakePackage, CudaPackage):
    """Sparse matrices on every GPU of one node."""

    # Where the repository is: spack develop --path, or the address of a clone.
    git = "file:///path/to/librmsp"

    license("BSD-3-Clause")
    version("main", branch="main")

    variant("openmp", default=True, description="OpenMP inside host devices")
    variant("metis", default=True, description="kernels that reorder")
    variant("nccl", default=True, when="+cuda", description="exchange by NCCL")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("hwloc@2:")
    depends_on("numactl")
    depends_on("fmt@9:")
    depends_on("spdlog@1.10: +shared fmt_external=true")
    depends_on("tomlplusplus@3:")
    depends_on("cli11@2:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("zlib-api")
    depends_on("xz")
    depends_on("zstd")
    depends_on("metis@5:", when="+metis")
    # librmsp opens cuSPARSE and NCCL when it first needs them, where the build saw them.
    depends_on("nccl", when="+nccl")
    depends_on("cuda@12:", when="+cuda")

    generator("ninja")
    conflicts("%gcc@:11")

    def cmake_args(self):
        args = [
            self.define_from_variant("RMSP_CUDA", "cuda"),
            self.define_from_variant("RMSP_OPENMP", "openmp"),
            self.define_from_variant("RMSP_METIS", "metis"),
            self.define("RMSP_MPI", False),
            self.define("RMSP_ZOLTAN", False),
            self.define("RMSP_TESTS", False),
            self.define("RMSP_EXAMPLES", False),
        ]
        if self.spec.satisfies("+cuda") and "none" not in self.spec.variants["cuda_arch"].value:
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
