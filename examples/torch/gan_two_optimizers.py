"""Two networks play against each other: two optimizers, detached fakes, a graph that is kept."""

import argparse
import json

import torch
from torch import nn


def network(inputs, width, outputs):
    return nn.Sequential(
        nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, outputs),
    )  # fmt: skip


def curves(batch, points):
    """Parabolas, as an artist would draw them."""
    scale = 1 + torch.rand(batch, 1)
    return scale * torch.linspace(-1, 1, points) ** 2 + scale - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=128)
    args = parser.parse_args()

    torch.manual_seed(2)
    generator, critic = network(8, args.width, 16), network(16, args.width, 1)
    for_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
    for_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for step in range(args.steps):
        real = curves(args.batch, 16)
        fake = generator(torch.randn(args.batch, 8, requires_grad=True))
        belief_fake = torch.sigmoid(critic(fake))
        generator_loss = torch.log(1 - belief_fake + 1e-6).mean()
        for_generator.zero_grad()
        generator_loss.backward()
        for_generator.step()

        belief_real = torch.sigmoid(critic(real))
        belief_fake = torch.sigmoid(critic(fake.detach()))
        critic_loss = -(torch.log(belief_real + 1e-6) + torch.log(1 - belief_fake + 1e-6)).mean()
        for_critic.zero_grad()
        critic_loss.backward(retain_graph=True)
        for_critic.step()
        belief = belief_real.data.numpy().mean()
        print(json.dumps({
            "step": step, "loss": critic_loss.item(), "generator": generator_loss.item(),
            "belief": float(belief),
        }))  # fmt: skip


if __name__ == "__main__":
    main()
