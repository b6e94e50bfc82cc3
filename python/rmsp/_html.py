"""What notebooks show of a matrix."""

from __future__ import annotations

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


def _roofline(measurement: dict) -> str:
    """How much of the bandwidth that bounds a product was reached, as a bar."""
    share = measurement.get("share_of_limit", 0)
    if not share:
        return ""
    width = round(100 * min(share, 1))
    gbs = measurement["bytes_per_second"] * 1e-9
    return (f"<div>{escape(measurement['name'])}: {gbs:.4g} GB/s, {100 * share:.1f} % of the bandwidth limit"
            f'<div style="width:20em;height:0.8em;border:1px solid"><div style="width:{width}%;height:100%;'
            'background:currentColor"></div></div></div>')


def html(matrix: Any) -> str:
    """The plan as a table, and the roofline of each measurement."""
    plan = matrix.plan()
    rows = [[s.device, f"{s.first_row:,} to {s.end_row:,}", f"{s.nnz:,}", _bytes(s.matrix_bytes), s.kernel]
            for s in plan.shards]
    head = (f"<p>rmsp.Matrix, {plan.rows:,} x {plan.cols:,}, {plan.nnz:,} nonzeros, {matrix.dtype}, {plan.format}, "
            f"{plan.mode}, transport {escape(plan.transport)}</p>")
    bars = "".join(_roofline(m) for m in matrix.report()["benchmarks"])
    return f"<div>{head}{_table(['device', 'rows', 'nonzeros', 'matrix', 'kernel'], rows)}{bars}</div>"
