"""Automatic partitioning as an environment in Gymnasium's interface.

    python partita_gym.py PARTITA module.mlir schedule.spec system.conf [--policy random] [--episodes 20]

`partita --environment` plays the program: an action slices values along an axis of the mesh, and a reward is how much
faster a simulated step becomes, as a part of what it took at first. An observation is the list of actions that were
taken, as zeros and ones. Gymnasium is used where it is installed; without it the class has the same methods.
"""
import argparse
import json
import math
import random
import subprocess

try:
    import gymnasium
    from gymnasium import spaces

    Base = gymnasium.Env
except ImportError:
    gymnasium, spaces, Base = None, None, object


class PartitionEnv(Base):
    """One program; `reset` gives it without actions, `step(a)` takes action a."""

    def __init__(self, command, steps=12):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.steps = steps
        self.first = self.ask(do="bound")["first"]
        self.all = self.ask(do="actions")["actions"]
        self.count = 1 + max((a["action"] for a in self.all), default=-1)
        self.taken = []
        self.cost = self.first
        if spaces is not None:
            self.action_space = spaces.Discrete(max(self.count, 1))
            self.observation_space = spaces.MultiBinary(max(self.count, 1))

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

    def legal(self):
        return [a["action"] for a in self.ask(do="actions")["actions"]]

    def observation(self):
        seen = set(self.taken)
        flags = [int(a in seen) for a in range(max(self.count, 1))]
        if gymnasium is None:
            return flags
        import numpy

        return numpy.array(flags, dtype=numpy.int8)

    def reset(self, *, seed=None, options=None):
        if gymnasium is not None:
            super().reset(seed=seed)
        answer = self.ask(do="reset")
        self.taken, self.cost = [], answer["cost"]
        return self.observation(), {"cost": self.cost}

    def step(self, action):
        answer = self.ask(do="step", action=int(action))
        # Costs fall by orders of magnitude while memory is exceeded: rewards are of their logarithm.
        reward = math.log(self.cost / answer["cost"])
        self.taken, self.cost = answer["state"], answer["cost"]
        truncated = len(self.taken) >= self.steps
        info = {"cost": self.cost, "taken": answer["taken"]}
        return self.observation(), reward, not self.legal(), truncated, info

    def specification(self):
        return self.ask(do="specification")["specification"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def greedy(env):
    """The action that makes the cost least, until none does."""
    env.reset()
    while True:
        state, now, best = list(env.taken), env.cost, None
        for a in env.legal():
            cost = env.ask(do="go_to", state=state + [a])["cost"]
            if cost < now * (1 - 1e-3):
                now, best = cost, a
        env.ask(do="go_to", state=state)
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
