#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What was found out once (which kernel won, which links work), kept in small files for later processes.
namespace rmsp::engine {

/// A folder of such files. What cannot be read or written is as good as absent: nothing here throws but std::bad_alloc.
/// Several processes may use the same folder.
class Cache {
public:
    /// As RuntimeOptions::cache: "off", "auto" ($XDG_CACHE_HOME/rmsp, else $HOME/.cache/rmsp, else as "off"), or a
    /// folder, which is made when the first file is written.
    explicit Cache(const std::string& setting = "off");

    bool enabled() const noexcept { return !folder_.empty(); }
    /// Of the file of that name, to be named in messages.
    std::string path(std::string_view name) const;
    /// Whether there is a file whose name begins so: not, if the cache is off. Whole names of some files take long to
    /// make.
    bool has_any(std::string_view prefix) const;
    /// What write() stored under that name; nothing if there is no such file. If the file is damaged, nothing either,
    /// and `damaged`, if not null, says what is wrong with it.
    std::optional<std::string> read(std::string_view name, std::string* damaged = nullptr) const;
    /// Replaces the file as a whole, so that readers see the old text or the new. False if that failed.
    bool write(std::string_view name, std::string_view text) const;

private:
    std::string folder_;
};

/// FNV-1a of bytes, continued from `hash`: for names of files, and for whether they are whole.
std::uint64_t fingerprint(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325U) noexcept;

}  // namespace rmsp::engine
