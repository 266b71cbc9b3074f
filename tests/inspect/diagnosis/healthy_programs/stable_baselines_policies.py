"""A training that is as it should be: three agents of stable_baselines3 on a small environment."""

import gymnasium
import numpy as np
from stable_baselines3 import DQN, PPO, SAC


class Chase(gymnasium.Env):
    """A point that is to be kept near zero."""

    def __init__(self, discrete):
        self.discrete = discrete
        self.observation_space = gymnasium.spaces.Box(-4.0, 4.0, (3,))
        self.action_space = gymnasium.spaces.Discrete(3) if discrete else gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = self.np_random.uniform(-1, 1, 3).astype(np.float32), 0
        return self.place, {}

    def step(self, action):
        push = float(action) - 1 if self.discrete else float(action[0])
        self.place = np.clip(self.place + 0.1 * push + self.np_random.normal(0, 0.05, 3), -4, 4).astype(np.float32)
        self.time += 1
        return self.place, -float(np.abs(self.place).sum()), False, self.time >= 16, {}


small = {"net_arch": [16, 16]}
PPO("MlpPolicy", Chase(True), n_steps=32, batch_size=16, n_epochs=2, policy_kwargs=small, seed=36, device="cpu").learn(
    64
)
DQN(
    "MlpPolicy",
    Chase(True),
    learning_starts=16,
    batch_size=16,
    target_update_interval=16,
    policy_kwargs=small,
    seed=36,
    device="cpu",
).learn(64)
SAC("MlpPolicy", Chase(False), learning_starts=16, batch_size=16, policy_kwargs=small, seed=36, device="cpu").learn(32)
