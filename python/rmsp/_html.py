"""What notebooks show of a matrix."""

from __future__ import annotations

import math
from html import escape
from typing import Any


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.3g} {unit}"
        count /= 1024
    return ""


def _table(head: list[str], rows: list[list[Any]]) -> str:
    def line(cells: list[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"


class _Axis:
    """A logarithmic axis from ``low`` to ``high``, which are drawn at ``first`` and ``last``."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        self.low, self.high, self._first, self._last = low, high, first, last

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self._first + share * (self._last - self._first), 2)

    def ticks(self) -> list[float]:
        """Powers of ten, and where there are few, 2 and 5 times these."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1,), (1, 2, 5)):
            found = [f * 10.0**d for d in decades for f in factors if self.low <= f * 10.0**d <= self.high]
            if len(found) > 2:
                break
        return found


_LEFT, _RIGHT, _TOP, _BOTTOM, _WIDTH, _HEIGHT = 52, 348, 10, 150, 360, 186


def roofline(points: list[tuple[str, float, float]], limit_gbs: float, peak_gflops: float = 0) -> str:
    """An SVG of what bounds products: the bandwidth, the arithmetic where ``peak_gflops`` is known, and how near each
    point (name, operations for each byte, GFLOP/s) is. Both axes are logarithmic.

    >>> roofline([("spmv", 0.125, 4.0)], 50).count("<circle")
    1
    """
    intensities = [x for _, x, _ in points]
    left, right = min(intensities) / 4, max(intensities) * 4
    if peak_gflops and peak_gflops / limit_gbs < 100 * right:
        right = max(right, 4 * peak_gflops / limit_gbs)  # the bend is shown
    else:
        peak_gflops = 0  # far beyond the drawing
    speeds = [y for _, _, y in points] + [limit_gbs * left, peak_gflops or limit_gbs * right]
    x = _Axis(left, right, _LEFT, _RIGHT)
    y = _Axis(min(speeds) / 1.5, max(speeds) * 1.5, _BOTTOM, _TOP)
    bend = peak_gflops / limit_gbs if peak_gflops else right
    shapes = [f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="currentColor"/>']
    for tick in x.ticks():
        shapes.append(f'<path d="M{x(tick)} {_BOTTOM}v4" stroke="currentColor"/>'
                      f'<text x="{x(tick)}" y="{_BOTTOM + 15}" text-anchor="middle">{tick:g}</text>')
    for tick in y.ticks():
        shapes.append(f'<path d="M{_LEFT} {y(tick)}h-4" stroke="currentColor"/>'
                      f'<text x="{_LEFT - 7}" y="{y(tick) + 3}" text-anchor="end">{tick:g}</text>')
    roof = f"{x(left)},{y(limit_gbs * left)} {x(bend)},{y(limit_gbs * bend)}"
    title = f"{limit_gbs:.4g} GB/s"
    if peak_gflops:
        roof += f" {x(right)},{y(peak_gflops)}"
        title += f", {peak_gflops:.4g} GFLOP/s"
    shapes.append(f'<polyline points="{roof}" fill="none" stroke="currentColor" stroke-width="2"><title>{title}</title>'
                  "</polyline>")
    for name, intensity, gflops in points:
        shapes.append(f'<circle cx="{x(intensity)}" cy="{y(gflops)}" r="4" fill="#d62728">'
                      f"<title>{escape(name)}: {gflops:.4g} GFLOP/s</title></circle>")
    shapes.append(f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_HEIGHT - 4}" text-anchor="middle">operations a byte</text>'
                  f'<text x="{_LEFT + 4}" y="{_TOP + 8}">GFLOP/s; the roof: {title}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" role="img" aria-label="roofline" font-size="10" fill="currentColor">'
            + "".join(shapes) + "</svg>")


def _measured(matrix: Any) -> str:
    """The roofline of what was measured, and its shares of the limit in words."""
    known = [m for m in matrix.report()["benchmarks"] if m.get("share_of_limit") and m["gflops"] > 0]
    if not known:
        return ""
    precision = "single" if matrix.dtype.itemsize == 4 else "double"
    points = [(f"{m['name']}, {m['layout']}", m["gflops"] * 1e9 / m["bytes_per_second"], m["gflops"]) for m in known]
    drawing = roofline(points, known[-1]["limit_gbs"], matrix.runtime.peak_gflops(precision))
    lines = [f"<div>{escape(name)}: {m['bytes_per_second'] * 1e-9:.4g} GB/s, {100 * m['share_of_limit']:.1f} % of the "
             "bandwidth limit</div>" for (name, _, _), m in zip(points, known)]
    return f"<div>{drawing}</div>{''.join(lines)}"


def html(matrix: Any) -> str:
    """The plan as a table, and the roofline with each measurement."""
    plan = matrix.plan()
    rows = [[s.device, f"{s.first_row:,} to {s.end_row:,}", f"{s.nnz:,}", _bytes(s.matrix_bytes), s.kernel]
            for s in plan.shards]
    head = (f"<p>rmsp.Matrix, {plan.rows:,} x {plan.cols:,}, {plan.nnz:,} nonzeros, {matrix.dtype}, {plan.format}, "
            f"{plan.mode}, transport {escape(plan.transport)}</p>")
    table = _table(["device", "rows", "nonzeros", "matrix", "kernel"], rows)
    return f"<div>{head}{table}{_measured(matrix)}</div>"
