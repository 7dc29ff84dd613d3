"""An LSTM that carries its state from batch to batch, with an update written out by hand."""

import argparse
import json
import math

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, vocabulary, units, layers):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, units)
        self.recur = nn.LSTM(units, units, layers, dropout=0.1)
        self.drop = nn.Dropout(0.1)
        self.decode = nn.Linear(units, vocabulary)
        self.decode.weight = self.embed.weight

    def forward(self, text, state):
        output, state = self.recur(self.drop(self.embed(text)), state)
        return self.decode(self.drop(output)), state

    def init_state(self, batch):
        weight = next(self.parameters())
        shape = (self.recur.num_layers, batch, self.recur.hidden_size)
        return weight.new_zeros(shape), weight.new_zeros(shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=12, help="words per step")
    parser.add_argument("--words", type=int, default=80, help="words per column of the text")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=100)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rate", type=float, default=2.0)
    args = parser.parse_args()

    torch.manual_seed(5)
    text = torch.randint(0, args.vocabulary, (args.words, args.batch))
    model = Reader(args.vocabulary, args.units, args.layers)
    state = model.init_state(args.batch)
    for begin in range(0, len(text) - 1, args.length):
        end = min(begin + args.length, len(text) - 1)  # the last piece is shorter
        state = tuple(part.detach() for part in state)
        model.zero_grad()
        logits, state = model(text[begin:end], state)
        target = text[begin + 1 : end + 1]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-args.rate)
        print(json.dumps({"loss": loss.item(), "perplexity": math.exp(loss.item())}))
    model.eval()
    with torch.no_grad():
        logits, _ = model(text[:5], model.init_state(args.batch))
    print(json.dumps({"likely": logits.argmax(dim=-1)[:, 0].tolist()}))


if __name__ == "__main__":
    main()
