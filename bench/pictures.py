"""What the pictures of benchmarks have in common: their last line says machine, date and commit, and the same data give
the same file."""
import matplotlib
import matplotlib.ticker

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "rmsp"


def where(context):
    """ "4 x NVIDIA H200, 2026-11-22, commit 73355e3" of the context of a benchmark's JSON."""
    names = []
    for device in context["devices"]:
        names += [device] if isinstance(device, str) else device["names"]
    kinds = [name.split(" ", 1)[-1] for name in dict.fromkeys(names)]  # "cuda:0 NVIDIA H200" in several sets
    # Some name sets of devices alone, "0,1".
    counted = ", ".join(f"{kinds.count(kind)} x {kind}" if not kind[0].isdigit() else f"devices {kind}"
                        for kind in dict.fromkeys(kinds))
    return f'{counted}, {context["date"][:10]}, commit {context["commit"]}'


def save(figure, out, context):
    """Writes the picture with its last line."""
    line = 0.25 / figure.get_figheight()
    figure.text(0.5, 0.2 * line, where(context), ha="center", va="bottom", fontsize=8, color="#606060")
    figure.tight_layout(rect=(0, line, 1, 1))
    figure.savefig(out, metadata={"Date": None})


def plain_numbers(axis, ticks):
    """Ticks of a logarithmic axis (axes.xaxis or axes.yaxis) as people write them."""
    axis.set_major_locator(matplotlib.ticker.FixedLocator(ticks))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())
