"""The exact interval of a rate that was counted."""

import math


def _upper(count, total, tail):
    """The rate at which `count` or fewer in `total` have the probability `tail`, by halving."""
    if count >= total:
        return 1.0

    def at_most_count(rate):
        logs = (math.lgamma(total + 1) - math.lgamma(i + 1) - math.lgamma(total - i + 1) + i * math.log(rate) + (total - i) * math.log1p(-rate)
                for i in range(count + 1))
        return sum(math.exp(term) for term in logs)

    low, high = count / total, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most_count(middle) > tail else (low, middle)
    return high


def exact_interval(count, total, confidence=0.95):
    """(low, high) of the rate behind `count` in `total`: Clopper and Pearson (Biometrika 26, 1934)."""
    tail = (1 - confidence) / 2
    return 1 - _upper(total - count, total, tail), _upper(count, total, tail)
