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
    margin:     minimum improvement over the champion; without a margin, any improvement is enough
    threshold:  minimum quality; None for no bound
    new:        number of samples in the challenger's training but not the champion's; None if unknown
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
