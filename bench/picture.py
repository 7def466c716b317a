"""Bar charts of the laboratory's results, as PNG."""


def bars(path, title, labels, panels, highlight):
    """One panel of horizontal bars per measure; `panels` is [(measure, values)], labels holding `highlight` stand out."""
    # Imported late: it would raise the memory that children of the laboratory start from.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    colors = ["#c8442b" if highlight in label else "#6b8299" for label in labels]
    figure, axes = pyplot.subplots(
        1, len(panels), sharey=True, figsize=(2 + 3.6 * len(panels), 1.2 + 0.36 * len(labels)), layout="constrained"
    )
    for axis, (measure, values) in zip([axes] if len(panels) == 1 else axes, panels):
        drawn = axis.barh(labels, [value or 0 for value in values], color=colors)
        axis.bar_label(drawn, [f"{value:.3g}" if value else "-" for value in values], padding=3, fontsize=8)
        axis.set_title(measure, fontsize=10)
        axis.margins(x=0.18)
        axis.spines[["top", "right"]].set_visible(False)
    figure.axes[0].invert_yaxis()
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def lines(path, title, across, up, panels):
    """One panel of lines per method, both axes in powers of ten; `panels` is [(name, [(label, [(x, y)])])]."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), sharey=True, figsize=(2 + 2.8 * len(panels), 3.6), layout="constrained")
    for axis, (name, drawn) in zip([axes] if len(panels) == 1 else axes, panels):
        for label, points in drawn:
            if points:
                axis.plot([x for x, _ in points], [y for _, y in points], marker=".", label=label)
        axis.set(xscale="log", yscale="log", xlabel=across, title=name)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(fontsize=6)
    figure.axes[0].set_ylabel(up)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
