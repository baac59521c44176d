"""Decide whether a challenger replaces the champion."""

from allranks_steps.models.metric import Metric


def decide(
    metric: Metric,
    challenger: float,
    champion: float | None,
    *,
    margin: float = 0.0,
    threshold: float | None = None,
    new: int | None = None,
) -> tuple[bool, str]:
    """Return whether the challenger is promoted, and why or why not.

    challenger: its value of the metric
    champion:   its value of the metric; None if there is no champion
    margin:     by how much the challenger must be better than the champion; it must be better unconditionally
    threshold:  the least good value; None for no bound
    new:        number of samples in the challenger's training but not the champion's; None if it is unknown
    """
    if new == 0:
        return False, "there is no new data, so nothing was trained"
    if threshold is not None and not metric.reaches(challenger, threshold):
        return False, metric.miss(challenger, threshold)
    value = f"{metric.name} {challenger:.4f}"
    if champion is None:
        return True, f"{value}, and there is no champion yet"
    compared = f"{value} against the champion's {champion:.4f}"
    if not metric.exceeds(challenger, champion):
        return False, f"{compared} is no better"
    if not metric.exceeds(challenger, champion, margin):
        return False, f"{compared} is not better by {margin:.4f}"
    return True, f"{compared} is better"
