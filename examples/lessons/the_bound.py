"""
The bound that EM minimises
===========================

For any memberships, minus the log-likelihood is Q - sum(KL + H): Q, less how far the memberships are from the right
ones (KL), less their entropy (H). With memberships held fixed, Q - sum H is a bound from above that touches the cost
where they were computed. EM goes to the lowest point of the bound, makes a new one there, and so on.

One parameter, so that it can be drawn: both deviations 10, equal shares, the first mean held at 60; only the second
one moves.
"""

# %%
# Twenty rows, log densities, memberships.
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

x = np.array([22, 35, 38, 41, 44, 47, 49, 52, 55, 57, 58, 60, 61, 63, 64, 66, 69, 72, 75, 81.0])


def joint(second):
    """Log of share times density (rows, 2)."""
    return np.log(0.5) + norm([60.0, second], 10.0).logpdf(x[:, None])


def cost(second):
    return -np.logaddexp.reduce(joint(second), axis=1).sum()


def memberships(second):
    return np.exp(joint(second) - np.logaddexp.reduce(joint(second), axis=1)[:, None])


def q(second, gamma):
    return -(gamma * joint(second)).sum()


def entropy(gamma):
    return -(gamma * np.log(gamma)).sum()


# %%
# Steps of EM from 20. The cost always falls; Q does not: from the second step on it rises, because the entropy of the
# memberships rises more. (Lecture notes that say "each step improves Q" mean Q and entropy together.)
path = [20.0]
for _ in range(6):
    gamma = memberships(path[-1])
    path.append(float(gamma[:, 1] @ x / gamma[:, 1].sum()))
costs = [cost(second) for second in path]
qs = [q(second, memberships(second)) for second in path]
for second, value, own in zip(path, costs, qs, strict=True):
    print(f"second mean {second:7.4f}   cost {value:8.4f}   Q {own:8.4f}")

# %%
# The identity holds for memberships that are not the posterior, too.
gamma = np.tile([0.3, 0.7], (len(x), 1))
divergence = (gamma * np.log(gamma / memberships(30.0))).sum()
identity = cost(30.0) - (q(30.0, gamma) - (divergence + entropy(gamma)))
print(f"cost - (Q - sum(KL + H)) = {identity:.1e}")

# %%
# The cost (black) and the bounds of the first three steps; dots where they touch, rings where they are lowest.
grid = np.linspace(5, 75, 300)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(grid, [cost(second) for second in grid], color="black", linewidth=2, label="minus log-likelihood")
bounds = []
for number, (here, there) in enumerate(pairwise(path[:4]), 1):
    gamma = memberships(here)
    bounds.append(np.array([q(second, gamma) - entropy(gamma) for second in grid]))
    (line,) = ax.plot(grid, bounds[-1], label=f"bound of step {number}")
    ax.plot(here, cost(here), "o", color=line.get_color())
    ax.plot(there, q(there, gamma) - entropy(gamma), "o", mfc="none", color=line.get_color())
ax.set(xlabel="second mean", ylabel="cost", ylim=(81, 97))
ax.legend()
plt.show()
