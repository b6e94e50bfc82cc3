"""The style of the pictures of benchmarks: their last line says machine, date and commit, colours are those of the
pages that mspmv writes, and the same data give the same file."""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402, F401
import matplotlib.ticker  # noqa: E402

COLOURS = ("#2563a8", "#d9822b", "#3d8f5f", "#8a5aa8", "#b5423c", "#3a9aa8", "#8c7a2e", "#6b7785")
OURS, THEIRS, LIMIT, QUIET = COLOURS[0], COLOURS[1], COLOURS[4], COLOURS[7]
# Few against more of the same: devices, or less and more of a method.
STEPS = ("#c3d4e8", "#7fa5d0", "#2563a8", "#163c66")

matplotlib.rcParams.update({
    "svg.hashsalt": "rmsp",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#5b6675",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#c9d1da",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
})


def where(context):
    """ "4 x NVIDIA H200, 2026-11-22, commit 73355e3" of the context of a benchmark's JSON."""
    names = []
    devices = context["devices"]
    if isinstance(devices, dict):  # set -> names of its devices
        devices = [{"names": of} for of in devices.values()]
    for device in devices:
        names += [device] if isinstance(device, str) else device["names"]
    kinds = [name.split(" ", 1)[-1] for name in dict.fromkeys(names)]  # "cuda:0 NVIDIA H200" in several sets
    counted = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))
    return f'{counted}, {context["date"][:10]}, commit {context["commit"]}'


def save(figure, out, context, note="", legend=None, columns=4):
    """Writes the picture with its last line, `note` above it, and at the top the legend of those axes."""
    text = f"{note}\n{where(context)}" if note else where(context)
    line = 0.17 / figure.get_figheight()
    figure.text(0.5, 0.3 * line, text, ha="center", va="bottom", fontsize=8, color="#5b6675")
    top = 1.0
    if legend is not None:
        entries = legend.get_legend_handles_labels()
        title = 0 if figure.get_suptitle() == "" else 0.3 / figure.get_figheight()
        figure.legend(*entries, loc="upper center", bbox_to_anchor=(0.5, 1 - title), ncol=columns)
        top -= title + 1.1 * line * (-(-len(entries[0]) // columns) + 0.5)
    figure.tight_layout(rect=(0, line * (1.3 + text.count("\n")), 1, top))
    figure.savefig(out, metadata={"Date": None})


def plain_numbers(axis, ticks):
    """Ticks of a logarithmic axis (axes.xaxis or axes.yaxis) as people write them."""
    axis.set_major_locator(matplotlib.ticker.FixedLocator(ticks))
    axis.set_major_formatter(
        matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def plain_logarithm(axes, which):
    """Makes the axis "x" or "y" logarithmic, with ticks of 1, 2 and 5 times powers of ten as people write them; where
    the figures are within a factor of 2, it stays linear."""
    limits = axes.dataLim
    low, high = (limits.minposx, limits.x1) if which == "x" else (limits.minposy, limits.y1)
    if high < 2 * low:
        return
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low / 1.3, high * 1.3)
    for bases in ((1, 2, 5), (1,)):
        ticks = [base * 10.0**power for power in range(-9, 13) for base in bases
                 if low / 1.3 <= base * 10.0**power <= high * 1.3]
        if len(ticks) <= 9:
            break
    plain_numbers(getattr(axes, f"{which}axis"), ticks)
