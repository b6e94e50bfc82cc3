#pragma once

#include <source_location>
#include <string>

#include <rmsp/error.hpp>

/// Libraries that are opened when something first needs them, so that librmsp itself is loaded where they are not.
namespace rmsp::core {

/// A library that a machine may lack.
struct OptionalLibrary {
    const char* name;     ///< "cuSPARSE"
    const char* file;     ///< "libcusparse.so.12": the version of the interface that this build was compiled for
    const char* purpose;  ///< what needs it: "the vendor's kernels"
    const char* source;   ///< who has it: "NVIDIA's CUDA toolkit, or pip install nvidia-cusparse"
    const char* folder;   ///< where the build saw it, looked at last; "" if it did not
};

/// A library is not on this machine, or is another than this build knows. As with NotCompiled, what was asked for
/// cannot be had, and all that does without it works.
class MissingLibrary : public Error {
public:
    explicit MissingLibrary(const std::string& message, std::source_location where = std::source_location::current())
        : Error(ErrorCode::usage, message, where)
    {
    }
};

/// An open library. It stays open until the process ends, since what it has started (threads, contexts of GPUs) does
/// not end before.
class SharedLibrary {
public:
    /// Looks in the folders of the environment variable RMSP_LIBRARY_PATH (the first that has the file decides), then
    /// where the system looks (what the process has loaded already, LD_LIBRARY_PATH, the run path of librmsp or of the
    /// program that it is part of, the system's folders), then in `library.folder`.
    /// \throws MissingLibrary naming the library, what needs it, why it was not opened and who has it
    explicit SharedLibrary(const OptionalLibrary& library);

    /// The file that was opened.
    std::string path() const;

    /// Lets `function` point to the function of that name. \throws MissingLibrary naming both and the file
    template <class Function>
    void find(const char* name, Function*& function) const
    {
        function = reinterpret_cast<Function*>(symbol(name));
    }

private:
    void* symbol(const char* name) const;

    OptionalLibrary library_;
    void* handle_ = nullptr;
};

}  // namespace rmsp::core
