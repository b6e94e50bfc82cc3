#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/mspmv/page/drawings.hpp"
#include "apps/mspmv/page/svg.hpp"

namespace rmsp::mspmv {
namespace {

constexpr std::size_t across = 4;  // devices in a row
constexpr double box_left = 12;
constexpr double box_right = Svg::width - 22;  // right of it buses of several nodes are joined
constexpr double device_width = 60;
constexpr double device_height = 36;
constexpr double device_pitch = 80;
constexpr double first_device = box_left + 10;
constexpr double header = 22;

/// Where a device is drawn, and on which side of it the other node is.
struct Place {
    double x = 0;
    double y = 0;
    std::size_t column = 0;
    bool behind = false;    ///< another row is between it and the node's heading
    bool mirrored = false;  ///< the heading of its node is below it

    double middle() const { return x + device_width / 2; }
    /// The edges towards the node's heading, and away from it.
    double near() const { return mirrored ? y + device_height : y; }
    double far() const { return mirrored ? y : y + device_height; }
    double away() const { return mirrored ? -1 : 1; }
};

struct NodeBox {
    double top = 0;
    double height = 0;
    double heading = 0;  ///< of the line from which links go to devices
    std::vector<std::size_t> devices;
};

struct DrawnLink {
    std::string text;  ///< for the legend; what has the same text has one colour
    std::vector<std::size_t> devices;
    std::vector<int> nodes;
    bool bus = false;  ///< each with each, by a switch or too many to draw one by one
};

bool is_switched(const Json& link)
{
    const auto found = link.is_object() ? link.find("switched") : link.end();
    return found != link.end() && found->is_boolean() && found->get<bool>();
}

std::string link_text(const Json& link, std::size_t devices)
{
    std::string out = text_of(link, "kind");
    const double gbs = number_of(link, "gbs");
    const bool switched = is_switched(link);
    if (gbs > 0) {
        out += fmt::format(": {:.3g} GB/s{}", gbs, switched ? " a device" : devices > across ? " a pair" : "");
    }
    return text_of(link, "source") == "self test" ? out + ", measured" : out;
}

std::vector<DrawnLink> links_of(const Json& plan, std::size_t devices)
{
    std::vector<DrawnLink> out;
    for (const Json& link : child_of(plan, "links")) {
        DrawnLink drawn;
        for (const Json& d : child_of(link, "devices")) {
            if (d.is_number_integer() && d.get<std::int64_t>() >= 0 &&
                d.get<std::int64_t>() < static_cast<std::int64_t>(devices)) {
                drawn.devices.push_back(d.get<std::size_t>());
            }
        }
        for (const Json& n : child_of(link, "nodes")) {
            if (n.is_number_integer()) {
                drawn.nodes.push_back(n.get<int>());
            }
        }
        drawn.text = link_text(link, drawn.nodes.empty() ? drawn.devices.size() : 1);
        drawn.bus = drawn.nodes.empty() && (is_switched(link) || drawn.devices.size() > across);
        out.push_back(std::move(drawn));
    }
    return out;
}

class MachineDrawing {
public:
    explicit MachineDrawing(const Json& context) : plan_(child_of(context, "plan")) { place(); }

    std::string draw()
    {
        if (boxes_.empty()) {
            return "";
        }
        for (const DrawnLink& link : links_) {
            if (std::ranges::find(legend_, link.text) == legend_.end()) {
                legend_.push_back(link.text);
            }
        }
        std::string transport = text_of(plan_, plan_.contains("transport") ? "transport" : "exchange");
        if (transport == "unknown" || transport == "none") {
            transport.clear();
        }
        const double below = bottom_ + 18;
        constexpr double line = 16;
        Svg svg(below + line * (static_cast<double>(legend_.size()) + (transport.empty() ? 0 : 1)),
                "NUMA nodes, devices and links");
        for (const auto& [node, box] : boxes_) {
            svg.rectangle(box_left, box.top, box_right - box_left, box.height, "node");
        }
        for (const DrawnLink& link : links_) {
            draw_link(svg, link);
        }
        for (const auto& [node, box] : boxes_) {
            const bool mirrored = box.heading > box.top + box.height / 2;
            svg.text(box_left + 8, mirrored ? box.top + box.height - 7 : box.top + 15,
                     node < 0 ? "no NUMA node" : fmt::format("NUMA node {}", node));
        }
        draw_devices(svg);
        double y = below;
        for (std::size_t i = 0; i < legend_.size(); ++i, y += line) {
            svg.line(box_left, y - 4, box_left + 18, y - 4, style(i));
            svg.text(box_left + 24, y, legend_[i]);
        }
        if (!transport.empty()) {
            svg.text(box_left, y, "transport: " + transport, "start", "quiet");
        }
        return svg.finish();
    }

private:
    /// Of two nodes the second has its heading below, so that their devices face each other.
    void place()
    {
        for (const Json& shard : child_of(plan_, "shards")) {
            boxes_[static_cast<int>(number_of(shard, "node", -1))].devices.push_back(shards_.size());
            shards_.push_back(&shard);
            work_ += work_of(shard);
        }
        places_.resize(shards_.size());
        links_ = links_of(plan_, shards_.size());
        // Room for the links between devices of a row.
        row_gap_ = std::ranges::any_of(links_, [](const DrawnLink& link) { return link.nodes.empty(); }) ? 26 : 6;
        double y = 4;
        for (auto& [node, box] : boxes_) {
            const bool mirrored = boxes_.size() == 2 && node == boxes_.rbegin()->first;
            const std::size_t rows = (box.devices.size() + across - 1) / across;
            box.top = y;
            box.height = header + static_cast<double>(rows) * (device_height + row_gap_) + 4;
            box.heading = mirrored ? y + box.height - header + 2 : y + header - 2;
            for (std::size_t i = 0; i < box.devices.size(); ++i) {
                const std::size_t row = i / across;
                const double offset = header + 6 + static_cast<double>(row) * (device_height + row_gap_);
                Place& p = places_[box.devices[i]];
                p.column = i % across;
                p.x = first_device + device_pitch * static_cast<double>(p.column);
                p.y = mirrored ? y + box.height - offset - device_height : y + offset;
                p.behind = row > 0;
                p.mirrored = mirrored;
            }
            y += box.height + 14;
        }
        bottom_ = y - 14;
    }

    std::string style(std::size_t legend) const
    {
        constexpr std::array<std::size_t, 8> colours{2, 1, 3, 4, 5, 6, 7, 0};
        return fmt::format("link l{}", colours.at(legend % colours.size()));
    }

    void draw_link(Svg& svg, const DrawnLink& link)
    {
        const auto index = static_cast<std::size_t>(std::ranges::find(legend_, link.text) - legend_.begin());
        const std::string of = style(index);
        if (link.bus) {
            draw_bus(svg, link, of);
        } else if (link.nodes.empty()) {
            for (std::size_t i = 0; i < link.devices.size(); ++i) {
                for (std::size_t j = i + 1; j < link.devices.size(); ++j) {
                    draw_pair(svg, places_[link.devices[i]], places_[link.devices[j]], of);
                }
            }
        } else if (link.devices.empty()) {
            draw_nodes(svg, link.nodes, of);
        } else {
            for (const int node : link.nodes) {
                const auto box = boxes_.find(node);
                for (const std::size_t d : link.devices) {
                    if (box != boxes_.end()) {
                        // Beside the middle, where the row before it does not hide it.
                        const double x = places_[d].behind ? places_[d].x - 6 : places_[d].x + 10;
                        const double y = places_[d].behind ? places_[d].y + device_height / 2 : places_[d].near();
                        svg.line(x, box->second.heading, x, y, of);
                        if (places_[d].behind) {
                            svg.line(x, y, places_[d].x, y, of);
                        }
                    }
                }
                if (box != boxes_.end()) {
                    svg.line(first_device, box->second.heading, heading_end(link.devices), box->second.heading, of);
                }
            }
        }
    }

    double heading_end(const std::vector<std::size_t>& devices) const
    {
        double end = first_device;
        for (const std::size_t d : devices) {
            end = std::max(end, places_[d].behind ? places_[d].x - 6 : places_[d].x + 10);
        }
        return end;
    }

    /// A line beside each row, joined on the right.
    void draw_bus(Svg& svg, const DrawnLink& link, const std::string& of)
    {
        std::map<double, std::pair<double, double>> rows;  // height of the bus -> from, to
        for (const std::size_t d : link.devices) {
            const Place& p = places_[d];
            const double y = p.far() + p.away() * 12;
            svg.line(p.middle(), p.far(), p.middle(), y, of);
            auto& [from, to] = rows.try_emplace(y, p.middle(), p.middle()).first->second;
            from = std::min(from, p.middle());
            to = std::max(to, p.middle());
        }
        const double right = box_right + 10;
        for (const auto& [y, ends] : rows) {
            svg.line(ends.first, y, rows.size() > 1 ? right : ends.second, y, of);
        }
        if (rows.size() > 1) {
            svg.line(right, rows.begin()->first, right, rows.rbegin()->first, of);
        }
    }

    static void draw_pair(Svg& svg, const Place& a, const Place& b, const std::string& of)
    {
        if (a.y != b.y) {
            const double from = a.y < b.y ? a.y + device_height : a.y;
            const double to = a.y < b.y ? b.y : b.y + device_height;
            svg.line(a.middle(), from, b.middle(), to, of);
            return;
        }
        const Place& first = a.column < b.column ? a : b;
        const Place& second = a.column < b.column ? b : a;
        const std::size_t distance = second.column - first.column;
        if (distance == 1) {
            svg.line(first.x + device_width, first.y + device_height / 2, second.x, first.y + device_height / 2, of);
            return;
        }
        // Around the devices between them, each pair at its own height and places.
        const double y = first.far() + first.away() * (distance == 2 ? (first.column % 2 == 0 ? 6 : 12) : 18);
        const double from = first.middle() + 6 * static_cast<double>(distance);
        const double to = second.middle() - 6 * static_cast<double>(distance);
        svg.polyline(
            fmt::format("{0:.1f},{1:.1f} {0:.1f},{2:.1f} {3:.1f},{2:.1f} {3:.1f},{1:.1f}", from, first.far(), y, to),
            of);
    }

    /// On the left of their boxes.
    void draw_nodes(Svg& svg, const std::vector<int>& nodes, const std::string& of)
    {
        const double x = box_left - 7;
        double first = INFINITY;
        double last = 0;
        for (const int node : nodes) {
            if (const auto box = boxes_.find(node); box != boxes_.end()) {
                svg.line(x, box->second.heading, first_device, box->second.heading, of);
                first = std::min(first, box->second.heading);
                last = std::max(last, box->second.heading);
            }
        }
        if (first < last) {
            svg.line(x, first, x, last, of);
        }
    }

    void draw_devices(Svg& svg) const
    {
        for (std::size_t d = 0; d < shards_.size(); ++d) {
            const Json& shard = *shards_[d];
            const Place& p = places_[d];
            svg.rectangle(p.x, p.y, device_width, device_height, "device",
                          fmt::format("{}, kernel {}", text_of(shard, "name"), text_of(shard, "kernel")));
            svg.text(p.middle(), p.y + 15, short_name(text_of(shard, "name")), "middle");
            svg.text(p.middle(), p.y + 29, fmt::format("{:.1f} %", work_ > 0 ? 100 * work_of(shard) / work_ : 0.0),
                     "middle", "quiet");
        }
    }

    const Json& plan_;
    std::vector<const Json*> shards_;
    std::vector<Place> places_;
    std::map<int, NodeBox> boxes_;
    std::vector<std::string> legend_;
    std::vector<DrawnLink> links_;
    double work_ = 0;
    double row_gap_ = 0;
    double bottom_ = 0;
};

}  // namespace

std::string machine_drawing(const Json& context) { return MachineDrawing(context).draw(); }

}  // namespace rmsp::mspmv
