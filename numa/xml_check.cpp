#include "numa/xml_check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::numa {
namespace {

using namespace std::string_view_literals;

constexpr std::array sets{"cpuset"sv, "complete_cpuset"sv, "nodeset"sv, "complete_nodeset"sv};
/// Types of objects that have no sets.
constexpr std::array without_sets{"Bridge"sv, "PCIDev"sv, "OSDev"sv, "Misc"sv};
constexpr std::string_view space = " \t\r\n";

class Scanner {
public:
    Scanner(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    void run()
    {
        if (text_.find('\0') != std::string_view::npos) {
            fail("a byte of zero");
        }
        while ((at_ = text_.find('<', at_)) != std::string_view::npos) {
            const std::string_view rest = text_.substr(at_);
            if (rest.starts_with("<!--")) {
                skip("-->");
            } else if (rest.starts_with("<?")) {
                check_encoding(rest.substr(0, rest.find("?>")));
                skip("?>");
            } else if (rest.starts_with("<!")) {
                check_document_type(rest.substr(0, rest.find('>')));
                skip(">");
            } else {
                tag();
            }
        }
    }

private:
    [[noreturn]] void fail(std::string_view what) const
    {
        const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
        throw Error(ErrorCode::io,
                    fmt::format("{}:{}: {}, which hwloc's XML of a machine does not have", name_, line, what));
    }

    void skip(std::string_view end)
    {
        const std::size_t found = text_.find(end, at_);
        at_ = found == std::string_view::npos ? text_.size() : found + end.size();
    }

    void check_encoding(std::string_view declaration) const
    {
        if (declaration.find("encoding") != std::string_view::npos &&
            declaration.find("\"UTF-8\"") == std::string_view::npos) {
            fail("an encoding other than UTF-8");
        }
    }

    void check_document_type(std::string_view declaration) const
    {
        if (declaration != R"(<!DOCTYPE topology SYSTEM "hwloc2.dtd")" &&
            declaration != R"(<!DOCTYPE topology SYSTEM "hwloc.dtd")") {
            fail("a declaration other than <!DOCTYPE topology SYSTEM \"hwloc2.dtd\">");
        }
    }

    /// What is before the next of these characters, which is where the scanner then is.
    std::string_view until(std::string_view ends)
    {
        const std::size_t begin = at_;
        at_ = std::min(text_.find_first_of(ends, at_), text_.size());
        return text_.substr(begin, at_ - begin);
    }

    /// Goes to the tag's end, and looks at its attributes if it begins an object.
    void tag()
    {
        const std::size_t begin = at_;
        const bool is_object = until(" \t\r\n/>") == "<object";
        std::string_view type;
        std::array<bool, sets.size()> has{};
        while (at_ < text_.size() && text_[at_] != '>') {
            const std::string_view key = until("=>");
            if (at_ == text_.size() || text_[at_] == '>') {
                break;
            }
            at_ = std::min(text_.find_first_not_of(space, at_ + 1), text_.size());
            const char quote = at_ < text_.size() ? text_[at_] : '\0';
            if (quote != '"' && quote != '\'') {
                fail("an attribute without quotes");
            }
            ++at_;
            const std::string_view value = until({&quote, 1});
            at_ = std::min(at_ + 1, text_.size());
            if (is_object) {
                attribute(key, value, type, has);
            }
        }
        if (!is_object) {
            return;
        }
        const std::size_t end = std::exchange(at_, begin);  // for messages
        if (!seen_object_ && type != "Machine" && type != "System") {
            fail("an outermost object other than a machine");
        }
        seen_object_ = true;
        const auto count = std::count(has.begin(), has.end(), true);
        const bool may_lack = std::find(without_sets.begin(), without_sets.end(), type) != without_sets.end();
        if (count != std::ssize(has) && (count > 0 || !may_lack)) {
            fail("an object without one of its sets of processors and nodes");
        }
        at_ = end;
    }

    void attribute(std::string_view key, std::string_view value, std::string_view& type,
                   std::array<bool, sets.size()>& has) const
    {
        const std::size_t first = std::min(key.find_first_not_of("/ \t\r\n"), key.size());
        const std::size_t last = key.find_last_not_of(space);
        key = key.substr(first, last == std::string_view::npos || last < first ? 0 : last - first + 1);
        if (key == "type") {
            type = value;
        }
        for (std::size_t i = 0; i < sets.size(); ++i) {
            if (key == sets[i]) {
                has[i] = true;
            }
        }
        // Nodes may be endless, as hwloc 1 wrote them of machines that have none.
        const std::string_view digits =
            key.ends_with("nodeset") ? "0123456789abcdefABCDEFx,." : "0123456789abcdefABCDEFx,";
        if (key.ends_with("set") &&
            (!value.starts_with("0x") || value.find_first_not_of(digits) != std::string_view::npos)) {
            fail("a set of processors or nodes that is endless or none");
        }
    }

    std::string_view text_;
    const std::string& name_;
    std::size_t at_ = 0;
    bool seen_object_ = false;
};

}  // namespace

void require_sound_xml(std::string_view text, const std::string& name) { Scanner(text, name).run(); }

}  // namespace rmsp::numa
