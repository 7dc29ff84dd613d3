"""A language model whose output layer is its embedding; clipping, accumulation, a schedule."""

import argparse
import json

import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width, heads, layers, length, dropout):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, text):
        length = text.shape[1]
        mask = self.mask[:length, :length]
        return self.head(self.blocks(self.tokens(text) + self.places[:length], mask=mask))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--micro-batches", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--vocabulary", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.1)
    args = parser.parse_args()

    torch.manual_seed(3)
    model = LanguageModel(
        args.vocabulary, args.width, args.heads, args.layers, args.length, args.dropout
    )
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    decay = [p for p in model.parameters() if p.dim() >= 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-3
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=args.steps + 1)
    for step in range(args.steps):
        total = 0.0
        for _ in range(args.micro_batches):
            text = torch.randint(0, args.vocabulary, (args.batch, args.length + 1))
            logits = model(text[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
            (loss / args.micro_batches).backward()
            total += loss.item() / args.micro_batches
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        rate = schedule.get_last_lr()[0]
        print(json.dumps({"step": step, "loss": total, "norm": norm.item(), "rate": rate}))


if __name__ == "__main__":
    main()
