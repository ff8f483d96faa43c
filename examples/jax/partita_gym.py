"""Automatic partitioning as a Gymnasium environment.

    python partita_gym.py PARTITA module.mlir schedule.spec system.conf [--policy random] [--episodes 20]

`partita --environment` serves the program, starting after the tactics of the specification; the system names a device.
An episode begins without actions (`reset`). An action tiles values along an axis of the mesh and propagates, like one
`manual` tactic. The reward is log(cost before / cost after): it is positive if a simulated step becomes faster. The
rewards of an episode sum to log(first cost / last cost). A cost is the seconds of a step, increased if memory is
exceeded. An action that is not legal, or is refused, changes nothing and has reward 0; info["taken"] is then False. An
episode terminates when no action is legal, and is truncated after `steps` actions.

An observation has the same shapes in all states of a program of N ops (including inputs), E edges, K actions, P pairs
of an action and an op, and A axes:

    nodes    float32 [N, 6 + 3 A]  kind of op, role (1: input, 2: tag), rank, log(1 + elements, bytes, flops); then per
                                   axis: tiled dimension of the result + 1 (or 0), 1 if a sum, 1 if replicated
    edges    int32 [E, 2]          an op, and an op that reads its result
    actions  float32 [K, 4]        axis, dimension (-1: the first that it divides), number of values, log(1 + bytes)
    members  int32 [P, 2]          an action, and an op whose result it tiles
    mask     int8 [K]              1 if the action is legal (action_masks() returns the same for maskable learners)
    figures  float32 [9]           log(cost / first cost), peak / memory, log(1 + bytes sent), log(1 + number) of
                                   all_gather, all_reduce, reduce_scatter, all_to_all, permute, and actions / steps

With gymnasium, observations are arrays, and the class has spaces (action_space, observation_space). Without it the
class has the same methods, and observations are lists. `shapes` has the shapes.
"""
import argparse
import json
import math
import random
import subprocess

try:
    import gymnasium
    import numpy
    from gymnasium import spaces

    Base = gymnasium.Env
except ImportError:
    gymnasium, Base = None, object

KINDS = "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "permute"


def logs(numbers):
    return [math.log1p(n) for n in numbers]


class PartitionEnv(Base):
    metadata = {"render_modes": []}

    def __init__(self, command, steps=12):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.steps = steps
        self.first = self.ask(do="bound")["first"]
        graph = self.ask(do="graph")
        self.axes, self.kinds = graph["axes"], graph["kinds"]
        self.nodes = [node[:3] + logs(node[3:]) for node in graph["nodes"]]
        # Spaces must not be empty, so a program without actions gets one that is never legal.
        actions = [action[:3] + logs(action[3:]) for action in graph["actions"]] or [[0, 0, 0, 0]]
        self.constant = {"edges": graph["edges"], "actions": actions, "members": graph["members"]}
        self.count = len(actions)
        self.shapes = {"nodes": (len(self.nodes), 6 + 3 * len(self.axes)), "edges": (len(graph["edges"]), 2),
                       "actions": (self.count, 4), "members": (len(graph["members"]), 2), "mask": (self.count,), "figures": (9,)}
        self.types = {key: "int8" if key == "mask" else "int32" if key in ("edges", "members") else "float32" for key in self.shapes}
        self.taken, self.cost = [], self.first
        if gymnasium is not None:
            ends = {"int8": (0, 1), "int32": (0, max(len(self.nodes), self.count) - 1), "float32": (-math.inf, math.inf)}
            self.action_space = spaces.Discrete(self.count)
            self.observation_space = spaces.Dict({key: spaces.Box(*ends[self.types[key]], shape, self.types[key])
                                                  for key, shape in self.shapes.items()})

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"partita ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def observation(self):
        state = self.ask(do="observe")
        figures = state["figures"]
        expanded = [[part for place in places for part in (max(place, 0), int(place == -1), int(place == -2))]
                    for places in state["nodes"]]
        self.mask = state["mask"] or [0]
        seen = {"nodes": [fixed + now for fixed, now in zip(self.nodes, expanded)], **self.constant, "mask": self.mask,
                "figures": [math.log(figures["cost"] / self.first), figures["peak_bytes"] / figures["memory_bytes"],
                            *logs([figures["bytes_sent"], *(figures[kind] for kind in KINDS)]), len(self.taken) / self.steps]}
        if gymnasium is None:
            return seen
        return {key: numpy.array(seen[key], self.types[key]).reshape(shape) for key, shape in self.shapes.items()}

    def legal(self):
        return [action for action, legal in enumerate(self.mask) if legal]

    def action_masks(self):
        return [bool(legal) for legal in self.mask] if gymnasium is None else numpy.array(self.mask, bool)

    def reset(self, *, seed=None, options=None):
        if gymnasium is not None:
            super().reset(seed=seed)
        return self.go_to([])

    def go_to(self, state):
        """Goes to the state after these actions."""
        answer = self.ask(do="go_to", state=list(state))
        self.taken, self.cost = answer["state"], answer["cost"]
        return self.observation(), {"cost": self.cost}

    def step(self, action):
        before, answer = self.cost, {"taken": False}
        if self.mask[int(action)]:
            answer = self.ask(do="step", action=int(action))
            self.taken, self.cost = answer["state"], answer["cost"]
        observation = self.observation()
        terminated, truncated = not any(self.mask), len(self.taken) >= self.steps
        info = {"cost": self.cost, "taken": answer["taken"]}
        return observation, math.log(before / self.cost), terminated, truncated, info

    def specification(self):
        return self.ask(do="specification")["specification"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def greedy(env):
    """Repeats the action with the lowest resulting cost until no action lowers the cost."""
    env.reset()
    while True:
        state, now, best = list(env.taken), env.cost, None
        for a in env.legal():
            cost = env.ask(do="go_to", state=state + [a])["cost"]
            if cost < now * (1 - 1e-3):
                now, best = cost, a
        env.go_to(state)
        if best is None:
            return
        env.step(best)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", nargs=4, help="partita, a module, a specification, a system")
    parser.add_argument("--policy", choices=["random", "greedy"], default="greedy")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    env = PartitionEnv([options.command[0], "--environment", *options.command[1:]])
    best, specification = env.first, ""
    draw = random.Random(options.seed)
    for _ in range(1 if options.policy == "greedy" else options.episodes):
        if options.policy == "greedy":
            greedy(env)
        else:
            env.reset()
            ended = False
            while not ended and env.legal():
                _, _, terminated, truncated, info = env.step(draw.choice(env.legal()))
                ended = terminated or truncated or not info["taken"]
                if env.cost < best:
                    best, specification = env.cost, env.specification()
        if env.cost < best:
            best, specification = env.cost, env.specification()
    print(f"# {options.policy}: {env.first:.4g} s at first, {best:.4g} s now")
    print(specification, end="")
    env.close()


if __name__ == "__main__":
    main()
