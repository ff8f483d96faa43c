"""Checks examples/jax/partita_gym.py: shapes, masks, rewards, learning from observations, and Gymnasium's own checks if
it is installed.

    PARTITA=build/examples/partita python gym_environment.py
"""
import importlib
import math
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/jax"))
import partita_gym

MODULE = """
func.func @main(%x: tensor<8192x2048xf32>, %w0: tensor<2048x8192xf32>, %w1: tensor<8192x2048xf32>, %b: tensor<2048xf32>)
    -> tensor<8192x2048xf32> {
  %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] : (tensor<8192x2048xf32>, tensor<2048x8192xf32>) -> tensor<8192x8192xf32>
  %1 = stablehlo.tanh %0 : tensor<8192x8192xf32>
  %2 = stablehlo.dot_general %1, %w1, contracting_dims = [1] x [0] : (tensor<8192x8192xf32>, tensor<8192x2048xf32>) -> tensor<8192x2048xf32>
  %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2048xf32>) -> tensor<8192x2048xf32>
  %4 = stablehlo.add %2, %3 : tensor<8192x2048xf32>
  return %4 : tensor<8192x2048xf32>
}
"""


def check(holds, *what):
    if not holds:
        raise AssertionError(" ".join(map(str, what)))


def shape_of(x):
    """Returns the shape of nested lists or of an array."""
    if hasattr(x, "shape"):
        return x.shape
    return (len(x), *(shape_of(x[0]) if x else ())) if isinstance(x, list) else ()


def looks_right(env, seen, info):
    check(seen.keys() == env.shapes.keys(), seen.keys())
    for key, shape in env.shapes.items():
        found = shape_of(seen[key])
        check(found == shape or not shape[0] and found in ((0,), shape), key, found, shape)
    check(env.legal() == [a["action"] for a in env.ask(do="actions")["actions"]], "the mask", list(seen["mask"]))
    check(list(map(bool, seen["mask"])) == list(env.action_masks()), "action_masks")
    check(math.isclose(float(seen["figures"][0]), math.log(env.cost / env.first), abs_tol=1e-5), "log of the cost", info)
    if partita_gym.gymnasium is not None:
        check(env.observation_space.contains(seen), "not in observation_space")


def play(module, seed):
    """Plays an episode of legal actions and checks each."""
    env, draw = module.PartitionEnv(command), random.Random(seed)
    seen, info = env.reset(seed=seed)
    looks_right(env, seen, info)
    check(env.cost == env.first and not any(any(places[6:]) for places in seen["nodes"]), "the beginning")
    rewards, ended = 0.0, False
    while not ended:
        before = env.cost
        seen, reward, terminated, truncated, info = env.step(draw.choice(env.legal()))
        looks_right(env, seen, info)
        check(math.isclose(reward, math.log(before / env.cost), abs_tol=1e-9), "reward")
        check(terminated == (not any(seen["mask"])), "terminated")
        check(truncated == (len(env.taken) >= env.steps), "truncated")
        rewards, ended = rewards + reward, terminated or truncated
    check(math.isclose(rewards, math.log(env.first / env.cost), abs_tol=1e-6), "rewards of an episode")
    # An illegal action changes nothing.
    taken, cost = list(env.taken), env.cost
    if 0 in seen["mask"]:
        _, reward, _, _, info = env.step(list(seen["mask"]).index(0))
        check((env.taken, env.cost, reward, info["taken"]) == (taken, cost, 0.0, False), "an illegal action")
    again, _ = env.go_to(taken)
    check(repr(again) == repr(seen), "the same state looks the same")
    first, _ = env.reset()
    check(env.cost == env.first and not any(any(places[6:]) for places in first["nodes"]), "after reset")
    env.close()
    return taken


def features(seen):
    """Returns per action its index, and how the ops that it tiles, and all ops, currently use its axis."""
    rows, nodes = [], seen["nodes"]
    for action, mine in enumerate(seen["actions"]):
        at = 6 + 3 * int(mine[0])  # the columns of the action's axis
        members = [nodes[node] for a, node in seen["members"] if a == action]
        part = lambda rows, column: sum(float(row[column] > 0) for row in rows) / max(len(rows), 1)
        one = [float(action == a) for a in range(len(seen["actions"]))]
        rows.append(one + [part(rows, at + i) for rows in (members, nodes) for i in range(3)])
    return rows


def learnt(seed, episodes=150, steps=3):
    """Trains a linear policy by policy gradient; returns mean returns of the first and last third of episodes."""
    env, draw, returns, mean = partita_gym.PartitionEnv(command, steps=steps), random.Random(seed), [], 0.0
    weights = [0.0] * len(features(env.reset()[0])[0])
    for _ in range(episodes):
        seen, _ = env.reset()
        score, ended, gradients = 0.0, False, []
        while not ended:
            rows, legal = features(seen), env.legal()
            exponents = [math.exp(sum(w * f for w, f in zip(weights, rows[a]))) for a in legal]
            chances = [e / sum(exponents) for e in exponents]
            action = draw.choices(legal, chances)[0]
            gradients.append([rows[action][i] - sum(c * rows[a][i] for c, a in zip(chances, legal)) for i in range(len(weights))])
            seen, reward, terminated, truncated, _ = env.step(action)
            score, ended = score + reward, terminated or truncated
        for gradient in gradients:
            weights = [w + 0.2 * (score - mean) * g for w, g in zip(weights, gradient)]
        returns.append(score)
        mean = sum(returns[-20:]) / len(returns[-20:])
    env.close()
    third = episodes // 3
    return sum(returns[:third]) / third, sum(returns[-third:]) / third


def learns():
    early, late = (sum(each) / len(each) for each in zip(*map(learnt, range(6))))
    print(f"learnt: {early:.3f} in the first third of episodes, {late:.3f} in the last one")
    check(late > early + 0.2, "later episodes are hardly better than the first ones")


def without_gymnasium():
    """Returns the class as it is without gymnasium."""
    hidden, sys.modules["gymnasium"] = sys.modules.get("gymnasium"), None
    plain = importlib.reload(partita_gym)
    check(plain.gymnasium is None and plain.Base is object, "gymnasium is hidden")
    taken = play(plain, 1)
    del sys.modules["gymnasium"]
    if hidden is not None:
        sys.modules["gymnasium"] = hidden
    importlib.reload(partita_gym)
    return taken


def searches():
    env = partita_gym.PartitionEnv(command)
    partita_gym.greedy(env)
    check(env.cost < 0.5 * env.first, "greedy", env.cost, env.first)
    check("manual" in env.specification(), env.specification())
    try:
        env.ask(do="jump")
        check(False, "an unknown request")
    except ValueError as e:
        check("X016" in str(e) and "observe" in str(e), e)
    env.close()


with tempfile.TemporaryDirectory() as folder:
    command = [os.environ.get("PARTITA", "partita"), "--environment"]
    for name, content in (("module.mlir", MODULE), ("schedule", "# no tactic yet\n"),
                          ("system", 'axis "B" 4\naxis "M" 2\ndevice A100-80\n')):
        command.append(os.path.join(folder, name))
        with open(command[-1], "w") as out:
            out.write(content)
    check(play(partita_gym, 1) == without_gymnasium(), "the same actions, with gymnasium and without")
    for seed in range(2, 6):
        play(partita_gym, seed)
    searches()
    learns()
    if partita_gym.gymnasium is not None:
        from gymnasium.utils.env_checker import check_env

        env = partita_gym.PartitionEnv(command)
        check_env(env, skip_render_check=True)
        env.close()
    print("right,", "with" if partita_gym.gymnasium is not None else "without", "gymnasium")
