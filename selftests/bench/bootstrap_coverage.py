"""How often the interval of a dataset's mean covers the truth: `python selftests/bench/bootstrap_coverage.py [RUNS]`.

Draws datasets of 5, 20 and 100 clusters of 1, 2, 3 or 10 tasks with 4 attempts each. A cluster has a mean rate, drawn
from a Beta distribution, and its tasks have rates around it; the truth is the mean of that distribution. The intervals
should cover it in 95 % of the datasets.
"""

from __future__ import annotations

import sys

import numpy as np

from pytest_otval.llm.bootstrap import means

CLUSTERS = (5, 20, 100)
SHAPES = {"even": (1.0, 1.0), "middling": (3.0, 3.0), "hard": (0.5, 2.0)}
TASKS = (1, 2, 3, 10)
ATTEMPTS = 4
ALIKE = 4.0
"""How close the rates of a cluster's tasks are to its own: their variance is a fifth of what it could be."""


def dataset(dice: np.random.Generator, clusters: int, shape: tuple[float, float]) -> tuple[list[float], list[str]]:
    """Return a solved share a task, and the tasks' clusters."""
    center = dice.beta(*shape, size=clusters)
    of = np.repeat(np.arange(clusters), dice.choice(TASKS, size=clusters))
    rates = dice.beta(np.maximum(center[of] * ALIKE, 1e-9), np.maximum((1 - center[of]) * ALIKE, 1e-9))
    return (dice.binomial(ATTEMPTS, rates) / ATTEMPTS).tolist(), [str(one) for one in of]


def main(datasets: int) -> None:
    dice = np.random.default_rng(0)
    print(f"{datasets} datasets each")
    for name, shape in SHAPES.items():
        truth = shape[0] / (shape[0] + shape[1])
        for clusters in CLUSTERS:
            covered, widths, missing = 0, [], 0
            for seed in range(datasets):
                values, names = dataset(dice, clusters, shape)
                found = means([values], names, seed)[0]
                if found.low is None or found.high is None:
                    missing += 1
                    continue
                covered += found.low <= truth <= found.high
                widths.append(found.high - found.low)
            print(
                f"{name} (mean {truth:.2f}), {clusters} clusters: covered in {100 * covered / len(widths):.1f} %,"
                f" mean width {np.mean(widths):.3f}, without interval {missing}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
