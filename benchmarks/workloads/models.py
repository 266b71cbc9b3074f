"""The networks of the workloads, each written once for every module that speaks PyTorch's API.

A network's first weights come from NumPy, so that every library starts from the same numbers and its first loss can be
compared with another's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["bert", "char_gpt", "lenet", "lstm", "mlp", "resnet", "start", "vit"]


def start(lib: Any, model: Any) -> Any:
    """Give a network the weights that it starts from, the same in every library, and return it."""
    rng = np.random.default_rng(0)
    with lib.no_grad():
        for name, parameter in model.named_parameters():
            shape = tuple(parameter.shape)
            if len(shape) > 1:
                bound = 1 / math.sqrt(math.prod(shape[1:]))
                parameter.copy_(lib.tensor(rng.uniform(-bound, bound, shape).astype(np.float32)))
            else:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
    return model


def mlp(lib: Any, *widths: int, activation: str = "ReLU") -> Any:
    """Return linear layers with an activation between each two."""
    nn = lib.nn
    layers = [nn.Linear(widths[0], widths[1])]
    for inputs, outputs in pairwise(widths[1:]):
        layers += [getattr(nn, activation)(), nn.Linear(inputs, outputs)]
    return start(lib, nn.Sequential(*layers))


def lenet(lib: Any) -> Any:
    """Return LeNet-5 with ReLU and maximum pooling, for images of 1×28×28."""
    nn = lib.nn
    return start(
        lib,
        nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(400, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, 10),
        ),
    )


def resnet(lib: Any, widths: tuple[int, ...] = (16, 32, 64), blocks: int = 2, stride: int = 1) -> Any:
    """Return a residual network for images of 3×32×32: He et al. (2016), section 4.2, with 1×1 shortcuts."""
    nn = lib.nn

    class Residual(nn.Module):
        """Two convolutions beside a shortcut."""

        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU()
            self.shortcut = nn.Identity()
            if stride > 1 or inputs != outputs:
                self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

        def forward(self, x: Any) -> Any:
            inner = self.relu(self.norm1(self.conv1(x)))
            return self.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))

    layers = [nn.Conv2d(3, widths[0], 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    inputs = widths[0]
    for stage, outputs in enumerate(widths):
        for block in range(blocks):
            layers.append(Residual(inputs, outputs, stride=2 if stage and not block else 1))
            inputs = outputs
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10)]
    return start(lib, nn.Sequential(*layers))


Attention = Callable[[Any, Any, Any], Any]


def fused_attention(lib: Any, causal: bool) -> Attention:
    """Return attention as one call of the library."""
    attend = lib.nn.functional.scaled_dot_product_attention
    return lambda query, key, value: attend(query, key, value, is_causal=causal)


def attention_by_hand(lib: Any, length: int) -> Attention:
    """Return causal attention, written out with its softmax."""
    future = lib.tensor(np.triu(np.ones((length, length), dtype=bool), 1))

    def attend(query: Any, key: Any, value: Any) -> Any:
        scores = (query @ key.transpose(-2, -1)) * query.shape[-1] ** -0.5
        return lib.nn.functional.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ value

    return attend


def transformer_blocks(lib: Any, layers: int, width: int, heads: int, attend: Attention) -> Any:
    """Return blocks of attention and of a two-layer perceptron, each behind a layer norm."""
    nn = lib.nn

    class Block(nn.Module):
        """Attention and a two-layer perceptron, each beside a shortcut."""

        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            shape = (x.shape[0], x.shape[1], heads, width // heads)
            parts = self.attention(self.norm1(x)).split(width, dim=2)
            query, key, value = (part.view(shape).transpose(1, 2) for part in parts)
            x = x + self.project(attend(query, key, value).transpose(1, 2).reshape(x.shape))
            return x + self.mlp(self.norm2(x))

    return nn.Sequential(*(Block() for _ in range(layers)))


def language_model(lib: Any, blocks: Any, *, width: int, length: int, vocabulary: int) -> Any:
    """Return a network with logits of every word at every place."""
    nn = lib.nn

    class LanguageModel(nn.Module):
        """Words in, words out."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = blocks
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, text: Any) -> Any:
            x = self.words(text) + self.places(lib.arange(length))
            return self.head(self.norm(self.blocks(x)))

    return start(lib, LanguageModel())


def char_gpt(lib: Any, *, layers: int, width: int, heads: int, length: int, fused: bool = True) -> Any:
    """Return a GPT over 65 characters, with the library's attention or with attention written out."""
    attend = fused_attention(lib, causal=True) if fused else attention_by_hand(lib, length)
    blocks = transformer_blocks(lib, layers, width, heads, attend)
    return language_model(lib, blocks, width=width, length=length, vocabulary=65)


def bert(lib: Any, *, length: int = 64, vocabulary: int = 4000) -> Any:
    """Return an encoder of text with 6.8 million parameters."""
    blocks = transformer_blocks(lib, 6, 256, 8, fused_attention(lib, causal=False))
    return language_model(lib, blocks, width=256, length=length, vocabulary=vocabulary)


def lstm(lib: Any, *, width: int = 640, vocabulary: int = 2000) -> Any:
    """Return a language model of two LSTM layers, 9.1 M parameters."""
    nn = lib.nn

    class LanguageModel(nn.Module):
        """Tokens in, logits out."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.lstm(self.embedding(tokens))[0])

    return start(lib, LanguageModel())


def vit(lib: Any) -> Any:
    """Return an encoder of images of 3×32×32, in patches of 4×4, with 6.4 million parameters."""
    nn = lib.nn

    class ViT(nn.Module):
        """Images in, logits out."""

        def __init__(self) -> None:
            super().__init__()
            self.patches, self.places = nn.Conv2d(3, 256, 4, stride=4), nn.Embedding(64, 256)
            self.blocks = transformer_blocks(lib, 8, 256, 8, fused_attention(lib, causal=False))
            self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, 10)

        def forward(self, images: Any) -> Any:
            x = self.patches(images).flatten(2).transpose(1, 2) + self.places(lib.arange(64))
            return self.head(self.norm(self.blocks(x).mean(1)))

    return start(lib, ViT())
