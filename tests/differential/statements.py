"""Statements for :mod:`tests.differential.live`, chosen by what tensors there are at that point of a program.

A :class:`Writer` looks at the living tensors of PyTorch, their shapes, strides, dtypes and histories, and writes the
next line: Python text that runs with ``torch`` as PyTorch or as gradscope. What may be asked of a tensor (a view that
its strides allow, an operand that broadcasts with it) is asked nine times in ten, something else the tenth time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["PREAMBLE", "Writer"]

PREAMBLE = '''
log = []


def note(tag, factor=None):
    """A hook of tensors: it tells what it saw, and may scale it."""
    def hook(grad):
        log.append((tag, None if grad is None else grad.detach().clone()))
        return None if factor is None or grad is None else grad * factor
    return hook


def note_grad(tag):
    """A hook of leaves whose gradient has been accumulated."""
    def hook(leaf):
        log.append((tag, leaf.grad.detach().clone()))
    return hook


def note_all(tag):
    """A hook of nodes and modules."""
    def hook(*arguments):
        log.append((tag, [type(argument).__name__ for argument in arguments if isinstance(argument, tuple)]))
    return hook


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x ** 3
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx, grad):
        x, result = ctx.saved_tensors
        return grad * 3 * x * x


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Ranked(torch.autograd.Function):
    """One result that has a gradient, and one that has none."""
    @staticmethod
    def forward(ctx, x):
        ranks = (x > 0).to(torch.float32)
        ctx.mark_non_differentiable(ranks)
        ctx.save_for_backward(ranks)
        return x * ranks, ranks

    @staticmethod
    def backward(ctx, grad, unused):
        ranks, = ctx.saved_tensors
        return grad * ranks


class Pair(torch.autograd.Function):
    """Two results; undefined gradients stay undefined."""
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return x * 2, y * x

    @staticmethod
    def backward(ctx, first, second):
        log.append(("pair", first is None, second is None))
        x, y = ctx.saved_tensors
        to_x = None if first is None else first * 2
        if second is not None:
            to_x = second * y if to_x is None else to_x + second * y
        return to_x, None if second is None else second * x


class Same(torch.autograd.Function):
    """The argument itself."""
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class Row(torch.autograd.Function):
    """A view of the argument."""
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.reshape(ctx.shape)


def known(module):
    """A module whose parameters are not drawn."""
    for parameter in module.parameters():
        torch.nn.init.constant_(parameter, 0.5)
    return module


def bent(x):
    return torch.sin(x) * x


def layer(x):
    return torch.relu(x * 2 - 0.5).sum(-1) if x.dim() else x * x


def packed(x):
    return x.detach().clone()


def unpacked(x):
    return x
'''

FLOATS = ("float32", "float64", "float16")
DTYPES = ("float32",) * 5 + ("float64",) * 4 + ("float16", "int64", "int64", "int32", "uint8", "bool", "complex64")
SHAPES = ((2, 3), (2, 3), (3,), (2, 1), (1, 3), (), (4,), (2, 2, 2), (3, 2), (0,), (1,), (6,))
UNARY = (
    "sin",
    "tanh",
    "sigmoid",
    "relu",
    "neg",
    "square",
    "abs",
    "cos",
    "exp",
    "sqrt",
    "log",
    "sgn",
    "floor",
    "sign",
    "reciprocal",
    "logical_not",
    "softmax",
    "isnan",
    "positive",
    "erf",
    "log1p",
    "rsqrt",
    "round",
    "trunc",
)
UNARY_WRITES = (
    "sin_",
    "tanh_",
    "sigmoid_",
    "relu_",
    "neg_",
    "abs_",
    "zero_",
    "sqrt_",
    "exp_",
    "floor_",
    "square_",
    "reciprocal_",
    "logical_not_",
    "sgn_",
)
BINARY = (
    "add",
    "sub",
    "mul",
    "mul",
    "div",
    "maximum",
    "minimum",
    "eq",
    "gt",
    "where",
    "atan2",
    "fmod",
    "pow",
    "copysign",
    "logical_and",
    "hypot",
    "remainder",
)
BINARY_WRITES = ("add_", "mul_", "sub_", "copy_", "copy_", "div_", "pow_", "fmod_", "atan2_", "eq_")
NUMBERS = ("2", "0.5", "-1.5", "3", "1", "True", "0", "-1", "2.0")
VALUES = ("0.25", "-0.5", "1.0", "1.5", "-2.0", "0.75", "2.0", "-1.25", "0.0", "3.0")

Tensors = Mapping[str, Any]


class Writer:
    """Writes statements for living tensors.

    Parameters
    ----------
    torch : module
    choices : random.Random
    """

    def __init__(self, torch: Any, choices: random.Random) -> None:
        self.torch = torch
        self.random = choices
        self.count = 0
        self.tensors: Tensors = {}
        self.leaves: set[str] = set()
        self.functions: list[Callable[[], str]] = []
        for name, weight in WEIGHTS.items():
            self.functions += [getattr(self, "_" + name)] * weight

    def statement(self, tensors: Tensors) -> str:
        """Return a line for the tensors that there are."""
        self.tensors = tensors
        line = self._line(tensors)
        if line.endswith(("requires_grad_()", "requires_grad=True)")):
            self.leaves.add(line.partition(" = ")[0])
        return line

    def _line(self, tensors: Tensors) -> str:
        if len(tensors) < 2:
            return self._make()
        if len(tensors) > 12:
            return f"del {self._pick()}"
        line = self.random.choice(self.functions)()
        if not self._one_in(9):
            return line
        block = self._block()
        return f"with {block}:\n    " + line.replace("\n", "\n    ")

    # --- choosing ---

    def _one_in(self, count: int) -> bool:
        return self.random.randrange(count) == 0

    def _of(self, *options: Any) -> Any:
        return self.random.choice(options)

    def _new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def _pick(self, wanted: Callable[[Any], bool] | None = None) -> str:
        """Return the name of a tensor, rather a newer one; of one that fits, nine times in ten."""
        names = list(self.tensors)
        fitting = [name for name in names if wanted is None or _fits(wanted, self.tensors[name])]
        if not fitting or (wanted is not None and self._one_in(12)):
            fitting = names
        return self.random.choice(fitting + fitting[-3:])

    def _writable(self, wanted: Callable[[Any], Any] | None = None) -> str:
        """Return a tensor that is no leaf, as far as its line says: to ask a view would make its history anew."""
        leaves = {id(self.tensors[name]) for name in self.leaves if name in self.tensors}
        return self._pick(lambda t: id(t) not in leaves and (wanted is None or wanted(t)))

    def _float(self) -> str:
        return self._pick(lambda t: t.is_floating_point())

    def _differentiable(self) -> str:
        return self._pick(lambda t: t.requires_grad)

    def _target(self) -> str:
        """Return something to write to: a tensor, or a part or an alias of one."""
        name = self._writable()
        tensor = self.tensors[name]
        way = self.random.randrange(12)
        if way == 0:
            return f"{name}.detach()"
        if way == 1:
            return f"{name}.data"
        if way == 2 and tensor.dim() and tensor.shape[0]:
            return f"{name}[{self._index(tensor.shape[0])}]"
        if way == 3 and tensor.dim():
            return f"{name}.{self._of('view(-1)', 'reshape(-1)', 't()', 'flatten()', 'unsqueeze(0)')}"
        return name

    def _partner(self, tensor: Any) -> str:
        """Return a tensor whose shape broadcasts with that of `tensor`."""
        return self._pick(lambda t: _broadcasts(t.shape, tensor.shape))

    def _source(self, tensor: Any) -> str:
        """Return a tensor that can be written into `tensor`."""
        return self._pick(lambda t: t.dim() <= tensor.dim() and _broadcasts(t.shape, tensor.shape, into=True))

    def _index(self, size: int) -> int:
        return self.random.randrange(-size, size) if size and not self._one_in(20) else size

    def _dim(self, tensor: Any) -> int:
        return self.random.randrange(-tensor.dim(), tensor.dim()) if tensor.dim() and not self._one_in(25) else 0

    def _dtype(self) -> str:
        return f"torch.{self.random.choice(DTYPES)}"

    def _block(self) -> str:
        return self._of(
            "torch.no_grad()",
            "torch.no_grad()",
            "torch.enable_grad()",
            "torch.set_grad_enabled(False)",
            "torch.inference_mode()",
            "torch.autograd.graph.saved_tensors_hooks(packed, unpacked)",
            "torch.autograd.graph.save_on_cpu()",
        )

    # --- values ---

    def _make(self) -> str:
        dtype, shape = self.random.choice(DTYPES), self.random.choice(SHAPES)
        values: Any = [self.random.choice(VALUES) for _ in range(_count(shape))]
        if dtype == "bool":
            values = [self._of("True", "False") for _ in values]
        elif dtype == "uint8":
            values = [value.lstrip("-").partition(".")[0] for value in values]
        elif not dtype.startswith(("float", "complex")):
            values = [value.partition(".")[0] for value in values]
        elif dtype.startswith("complex"):
            values = [f"{value}+{self._of('0.5', '1.0')}j" for value in values]
        wanted = dtype.startswith(("float", "complex")) and not self._one_in(3)
        grad = ", requires_grad=True" if wanted else ""
        return f"{self._new()} = torch.tensor([{', '.join(values)}], dtype=torch.{dtype}).reshape({shape})" + (
            ".requires_grad_()" if grad else ""
        )

    def _unary(self) -> str:
        function = self.random.choice(UNARY)
        name = self._float() if function == "softmax" else self._pick()
        dim = f", {self._dim(self.tensors[name])}" if function == "softmax" else ""
        return f"{self._new()} = torch.{function}({name}{dim})"

    def _binary(self) -> str:
        name, function = self._pick(), self.random.choice(BINARY)
        other = self._partner(self.tensors[name])
        if function == "where":
            return f"{self._new()} = torch.where({name}.detach() != 0.5, {name}, {other})"
        return f"{self._new()} = torch.{function}({name}, {other})"

    def _operator(self) -> str:
        name = self._pick()
        other = self._of(self._partner(self.tensors[name]), self.random.choice(NUMBERS))
        left, right = self._of((name, other), (other, name))
        return f"{self._new()} = {left} {self._of('+', '-', '*', '/', '*', '+', '<', '**', '%', '//')} {right}"

    def _reduce(self) -> str:
        name = self._pick()
        function = self._of("sum", "sum", "mean", "prod", "amax", "std", "var", "logsumexp", "norm", "any", "all")
        if function in ("sum", "mean", "prod", "norm", "any", "all") and self._one_in(2):
            return f"{self._new()} = {name}.{function}()"
        keep = self._of("", ", keepdim=True")
        return f"{self._new()} = {name}.{function}(dim={self._dim(self.tensors[name])}{keep})"

    def _several(self) -> str:
        name = self._pick()
        dim = self._dim(self.tensors[name])
        call = self._of(f"max({dim})", f"min({dim})", f"sort({dim})", f"cumsum({dim})", f"cumprod({dim})", "aminmax()")
        part = "" if call.startswith("cum") else self._of("[0]", "[0]", "[1]")
        return f"{self._new()} = {name}.{call}{part}"

    def _join(self) -> str:
        name = self._pick(lambda t: t.dim() > 0)
        tensor = self.tensors[name]
        function = self._of("cat", "stack", "matmul", "outer", "einsum", "hstack", "addmm")
        if function == "einsum":
            name = self._pick(lambda t: t.dim() > 0 and t.is_floating_point())
            tensor = self.tensors[name]
        alike = self._pick(lambda t: t.shape == tensor.shape)
        if function == "matmul":
            name = self._pick(lambda t: t.dim() in (1, 2))  # products of stacks are folded in other ways
            sizes = tuple(self.tensors[name].shape)[-1:]
            other = self._pick(lambda t: t.dim() in (1, 2) and tuple(t.shape[:1]) == sizes)
            return f"{self._new()} = {name} @ {other}"
        if function == "outer":
            vector = self._pick(lambda t: t.dim() == 1)
            return f"{self._new()} = torch.outer({vector}, {self._pick(lambda t: t.dim() == 1)})"
        if function == "einsum":
            alike = self._pick(lambda t: t.shape == tensor.shape and t.dtype == tensor.dtype)
            return f"{self._new()} = torch.einsum('...i,...i->...', {name}, {alike})"
        if function == "addmm":
            matrix = self._pick(lambda t: t.dim() == 2)
            return f"{self._new()} = torch.addmm({self._pick()}, {matrix}, {matrix}.t())"
        dim = "" if function == "hstack" else f", {self._dim(tensor)}"
        return f"{self._new()} = torch.{function}([{name}, {alike}]{dim})"

    def _convert(self) -> str:
        name = self._pick()
        call = self._of(
            f"to({self._dtype()})",
            f"to({self._dtype()})",
            "clone()",
            "clone()",
            "contiguous()",
            "detach()",
            "data",
            "float()",
            "double()",
            f"type_as({self._pick()})",
            "clone(memory_format=torch.contiguous_format)",
            "clone(memory_format=torch.preserve_format)",
            "new_zeros((2,))",
            "new_ones((3,))",
        )
        return f"{self._new()} = {name}.{call}"

    def _like(self) -> str:
        function = self._of("zeros_like", "ones_like")
        return f"{self._new()} = torch.{function}({self._pick()}{self._of('', ', requires_grad=True')})"

    # --- views ---

    def _view(self) -> str:
        name = self._pick()
        return f"{self._new()} = {name}{self._view_of(self.tensors[name])}"

    def _view_of(self, tensor: Any) -> str:
        """Return a call that views `tensor`, as its shape and strides allow."""
        shape, dim = tuple(tensor.shape), self._dim(tensor)
        size = shape[dim] if shape else 1
        options = [
            ".view(-1)",
            ".reshape(-1)",
            f".unsqueeze({self._of(0, -1)})",
            ".squeeze()",
            ".flatten()",
            "[...]",
            "[None]",
            f".view_as({self._pick(lambda t: t.numel() == tensor.numel())})",
            ".ravel()",
            ".view(tensor_shape)",
            f".expand(2, *{shape})",
            ".real",
            ".expand_as(other)",
        ]
        if shape:
            start = self.random.randrange(size) if size else 0
            options += [
                f".narrow({dim}, {start}, {self.random.randint(0, size - start)})",
                f".select({dim}, {self._index(size)})",
                f"[{self._index(shape[0])}]",
                f"[{start}:]",
                f"[::{self._of(1, 2)}]",
                f"[..., {self._index(shape[-1])}]",
                f".transpose({dim}, {self._dim(tensor)})",
                f".squeeze({dim})",
                f".unfold({dim}, {min(size, 2)}, 1)",
                f".movedim({dim}, {self._dim(tensor)})",
                f".unbind({dim})[0]",
                f".split(1, {dim})[0]",
                f".chunk(2, {dim})[-1]",
                f".split(1, {dim})[0]",
                ".mT",
                f".permute({self._order(len(shape))})",
                f".reshape({self._shape(tensor.numel())})",
                f".view({self._shape(tensor.numel())})",
                f".swapaxes({dim}, 0)",
                f".unbind({dim})[-1]",
            ]
            if 1 in shape:
                options += [f".expand({', '.join(str(2 if n == 1 else n) for n in shape)})"] * 3
        if len(shape) >= 2:
            options += [f".diagonal({self._of(0, 0, 1, -1)})", ".t()", ".T", ".diagonal(0, -2, -1)"]
        if tensor.is_complex():
            options += [".real", ".imag", ".real"] * 2
        text = self.random.choice([*options, self._strided(tensor)])
        text = text.replace("tensor_shape", str(shape)).replace(
            "other", self._pick(lambda t: _broadcasts(t.shape, shape))
        )
        return text

    def _strided(self, tensor: Any) -> str:
        """Return as_strided() within the storage, or now and then one element beyond it."""
        have = len(tensor.untyped_storage()) // tensor.element_size()
        size = [self._of(1, 2, 3) for _ in range(self._of(0, 1, 1, 2))]
        stride = [self._of(0, 1, 1, 2, 3) for _ in size]
        extent = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        offset = self.random.randint(0, max(have - extent, 0)) + self._one_in(15)
        return f".as_strided({tuple(size)}, {tuple(stride)}{self._of(f', {offset}', f', {offset}', '')})"

    def _order(self, count: int) -> str:
        order = list(range(count))
        self.random.shuffle(order)
        return ", ".join(map(str, order))

    def _shape(self, count: int) -> str:
        options = [
            (count,),
            (-1,),
            (1, count),
            (count, 1),
            *((n, count // n) for n in (2, 3) if count and count % n == 0),
        ]
        return str(self.random.choice(options))

    # --- indexing ---

    def _key(self, tensor: Any) -> str:
        """Return an index for `tensor`."""
        if not tensor.dim():
            return self._of("...", "None", "()", f"{self._pick(lambda t: t.dtype == self.torch.bool)}")
        size = tensor.shape[0]
        name = next((n for n, t in self.tensors.items() if t is tensor), "")
        options = [
            f"{self._index(size)}",
            f"{self._index(size)}:",
            f":{self._index(size)}",
            "...",
            "None",
            f"..., {self._index(tensor.shape[-1])}",
            f"[{self._index(size)}, {self._index(size)}]",
            f"torch.tensor([{self._index(size)}, {self._index(size)}])",
            "::2",
            f"[{self._index(size)}]",
        ]
        if name:
            options += [f"{name}.detach() != 1"] * 2
        mask = self._pick(lambda t: t.dtype in (self.torch.bool, self.torch.int64) and t.dim() <= tensor.dim())
        if tensor.dim() > 1:
            last = tensor.shape[1]
            options += [
                f"{self._index(size)}, {self._index(last)}",
                f":, {self._index(last)}",
                f":, [{self._index(last)}]",
                f"[{self._index(size)}, {self._index(size)}], {self._index(last)}",
            ]
        return self.random.choice([*options, mask])

    def _get(self) -> str:
        name = self._pick()
        return f"{self._new()} = {name}[{self._key(self.tensors[name])}]"

    def _gather(self) -> str:
        name = self._pick(lambda t: t.dim() and t.numel())
        tensor = self.tensors[name]
        dim = self._dim(tensor)
        size = tensor.shape[dim] if tensor.dim() else 1
        index = f"torch.tensor([{self._index(size)}, {self._of(0, abs(self._index(size)) % max(size, 1))}]).abs()"
        return self._of(
            f"{self._new()} = {name}.index_select({dim}, {index})",
            f"{self._new()} = torch.take({name}, {index})",
            f"{self._new()} = {name}.masked_select({name}.detach() > 0)",
            f"{self._new()} = {name}.masked_fill({name}.detach() > 0, {self.random.choice(NUMBERS)})",
            f"{self._new()} = {name}.index_add({dim}, {index}, {self._pick(lambda t: t.dtype == tensor.dtype)})",
            f"{self._new()} = {name}.gather({dim}, torch.zeros({tuple(tensor.shape)}, dtype=torch.int64))",
            f"{self._new()} = {name}.scatter({dim}, torch.zeros({tuple(tensor.shape)}, dtype=torch.int64)[..., :1], 2)",
        )

    # --- writes ---

    def _write(self) -> str:
        return f"{self._target()}.{self.random.choice(UNARY_WRITES)}()"

    def _write_number(self) -> str:
        function = self._of("add_", "mul_", "sub_", "div_", "fill_", "pow_", "clamp_", "fmod_")
        return f"{self._target()}.{function}({self.random.choice(NUMBERS)})"

    def _write_tensor(self) -> str:
        target, function = self._target(), self.random.choice(BINARY_WRITES)
        tensor = self._value(target)
        return f"{target}.{function}({self._source(tensor)})"

    def _value(self, text: str) -> Any:
        """Return the tensor that an expression stands for, or the newest one."""
        name = text.partition(".")[0].partition("[")[0]
        return self.tensors.get(name, next(iter(self.tensors.values())))

    def _augmented(self) -> str:
        name = self._writable()
        other = self._of(self._source(self.tensors[name]), self.random.choice(NUMBERS))
        return f"{name} {self._of('+=', '*=', '-=', '/=')} {other}"

    def _set_item(self) -> str:
        name = self._writable()
        tensor = self.tensors[name]
        key = self._key(tensor)
        value = self._of(
            self.random.choice(NUMBERS),
            self._pick(lambda t: t.dim() == 0),
            self._source(tensor),
            f"{name}[{key}].clone() * 2",
        )
        return f"{name}[{key}] = {value}"

    def _put(self) -> str:
        name = self._writable(lambda t: t.dim() and t.numel())
        tensor = self.tensors[name]
        size = tensor.shape[0] if tensor.dim() else 1
        value = self._pick(lambda t: t.dtype == tensor.dtype and t.dim() < max(tensor.dim(), 1))
        index = f"torch.tensor([{max(size - 1, 0)}, 0])"
        return self._of(
            f"{name}.index_put_(({index},), {value}, accumulate={self._of('True', 'False')})",
            f"{name}.masked_fill_({name}.detach() > 0, {self.random.choice(NUMBERS)})",
            f"{name}.masked_fill_({name}.detach() > 0, {value})",
            f"{name}.index_fill_(0, {index}, {self.random.choice(NUMBERS)})",
            f"{name}.index_copy_(0, {index}, {name}[:2].clone())",
            f"{name}.index_add_(0, {index}, {name}[:2].clone())",
            f"{name}.scatter_add_(0, torch.zeros({tuple(tensor.shape)}, dtype=torch.int64), {name}.clone())",
            f"{name}.masked_scatter_({name}.detach() > 0, {name}.clone())",
        )

    def _out(self) -> str:
        name = self._pick()
        tensor = self.tensors[name]
        out = self._pick(lambda t: t.shape == tensor.shape and not t.requires_grad and t.dtype == tensor.dtype)
        other = self._pick(lambda t: t.dim() <= tensor.dim() and _broadcasts(t.shape, tensor.shape, into=True))
        if self._one_in(4):
            call = self._of(
                f"sum({name}, {self._dim(tensor)}", f"matmul({name}, {name}", f"cat([{name}, {name}]", f"mul({name}, 2"
            )
            return f"{self._new()} = torch.{call}, out=torch.zeros(0, dtype={tensor.dtype}))"
        call = self._of(
            f"add({name}, {other}",
            f"mul({name}, {other}",
            f"sin({name}",
            f"neg({name}",
            f"where({name} != 0, {name}, {other}",
            f"abs({name}",
            f"div({name}, {other}",
            f"clamp({name}, 0, 1",
            f"gt({name}, {other}",
            f"logical_not({name}",
            f"cumsum({name}, {self._dim(tensor)}",
        )
        return f"torch.{call}, out={out})"

    def _reshape_in_place(self) -> str:
        name = self._pick()
        tensor = self.tensors[name]
        dim = self._dim(tensor)
        call = self._of(
            "t_()",
            "squeeze_()",
            f"unsqueeze_({self._of(0, -1)})",
            f"transpose_({dim}, {self._dim(tensor)})",
            f"squeeze_({dim})",
            self._strided(tensor).lstrip(".").replace("as_strided(", "as_strided_("),
            f"swapaxes_({dim}, 0)",
        )
        return f"{name}.{call}"

    # --- history ---

    def _switch(self) -> str:
        name = self._pick()
        other = self._pick(lambda t: t.dtype == self.tensors[name].dtype)
        return self._of(
            f"{name}.detach_()",
            f"{name}.requires_grad_()",
            f"{name}.requires_grad_(False)",
            f"{name}.requires_grad = {self._of('True', 'False')}",
            f"{name}.data = {other}.data",
            f"{name}.data = {other}.detach().clone()",
            f"{self._new()} = {name}.detach().requires_grad_()",
            f"{self._new()} = {name}.clone().requires_grad_()",
            f"{name}.set_({other}.detach())",
            f"{self._new()} = {name}.view_as({name})",
            f"{name} = {other}",
        )

    def _gradient(self) -> str:
        name = self._pick(lambda t: t.grad is not None)
        return self._of(
            f"{self._new()} = {name}.grad",
            f"{self._new()} = {name}.grad",
            f"{name}.grad = None",
            f"{name}.grad.zero_()",
            f"{name}.grad = {name}.detach() * 2",
            f"{name}.grad.mul_(0.5)",
            f"{name}.grad.detach_()",
        )

    def _hook(self) -> str:
        name = self._differentiable()
        tag = self._new()
        return self._of(
            f"{name}.grad_fn; {tag}_handle = {name}.register_hook(note('{tag}', {self._of('None', '2.0', '-0.5')}))",
            f"{name}.grad_fn; {tag}_handle = {name}.register_hook(note('{tag}', {self._of('None', '2.0', '-0.5')}))",
            f"{tag}_handle = {name}.grad_fn.register_hook(note_all('{tag}'))",
            f"{tag}_handle = {name}.grad_fn.register_prehook(note_all('{tag}'))",
            f"{name}.grad_fn; {name}.retain_grad()",
            f"{tag}_handle = {name}.register_post_accumulate_grad_hook(note_grad('{tag}'))",
        )

    def _function(self) -> str:
        name = self._pick(lambda t: t.is_floating_point() and t.requires_grad)
        other = self._pick(lambda t: t.shape == self.tensors[name].shape and t.is_floating_point())
        return self._of(
            f"{self._new()} = Cube.apply({name})",
            f"{self._new()} = Doubled.apply({name} * 1)",
            f"{self._new()} = Doubled.apply({name})",
            f"{self._new()} = Ranked.apply({name}){self._of('[0]', '[1]', '[0]')}",
            f"{self._new()} = Pair.apply({name}, {other}){self._of('[0]', '[1]')}",
            f"{self._new()} = Same.apply({name})",
            f"{self._new()} = Row.apply({name})",
        )

    def _checkpoint(self) -> str:
        function, reentrant = self._of("bent", "layer", "Cube.apply"), self._of("True", "False")
        name = self._differentiable()
        return f"{self._new()} = torch.utils.checkpoint.checkpoint({function}, {name}, use_reentrant={reentrant})"

    def _module(self) -> str:
        name = self._pick(lambda t: t.dim() > 1 and t.numel() and t.dtype == self.torch.float32)
        size = self.tensors[name].shape[-1] if self.tensors[name].dim() else 1
        tag = self._new()
        hook = self._of(
            "",
            f"; {tag}_m.register_full_backward_hook(note_all('{tag}'))",
            f"; {tag}_m.register_forward_hook(note_all('{tag}'))",
            f"; {tag}_m.register_full_backward_pre_hook(note_all('{tag}'))",
        )
        made = f"{tag}_m = known(torch.nn.Linear({size}, 2))"
        if self._one_in(2):
            others = ("ReLU()", "Tanh()", "ReLU(inplace=True)", "Flatten(0)", "Softmax(-1)", f"LayerNorm({size})")
            made = f"{tag}_m = torch.nn.{self.random.choice(others)}"
        return f"{made}{hook}; {tag} = {tag}_m({name})"

    # --- backward ---

    def _scalar(self, name: str) -> str:
        tensor = self.tensors[name]
        if tensor.is_complex():
            return f"{name}.abs().sum()"
        return self._of(f"{name}.sum()", f"{name}.sum()", f"({name} * {name}).sum()", f"{name}.mean()")

    def _backward(self) -> str:
        name = self._differentiable()
        tensor = self.tensors[name]
        options = [self._of("", "", "retain_graph=True"), self._of("", "", "create_graph=True")]
        if self._one_in(4):
            options.append(f"inputs=[{self._differentiable()}]")
        arguments = ", ".join(filter(None, options))
        if self._one_in(3):
            like = self._of(f"torch.ones_like({name})", f"{name}.detach().clone()", "None")
            return f"{name}.backward({', '.join(filter(None, [like, arguments]))})"
        if tensor.dim() == 0 and self._one_in(2):
            return f"{name}.backward({arguments})"
        return f"{self._scalar(name)}.backward({arguments})"

    def _grad(self) -> str:
        name = self._differentiable()
        inputs = ", ".join(dict.fromkeys(self._differentiable() for _ in range(self._of(1, 1, 2))))
        options = [
            "",
            *self._sample("create_graph=True", "retain_graph=True", "allow_unused=True", "materialize_grads=True"),
        ]
        out = self._new()
        return f"{out} = torch.autograd.grad({self._scalar(name)}, [{inputs}]{', '.join(options)})[0]"

    def _double(self) -> str:
        name, over = self._differentiable(), self._differentiable()
        first = f"torch.autograd.grad(({name} * {name} * 0.5).sum(), {over}, create_graph=True)[0]"
        last = self._of(f"torch.autograd.grad((g * g).sum(), {over}, allow_unused=True)[0]", "g")
        return f"g = {first}; {self._new()} = {last}"

    def _sample(self, *options: str) -> list[str]:
        return [option for option in options if self._one_in(3)]

    def _drop(self) -> str:
        return f"del {self._pick()}"


WEIGHTS = {
    "make": 3,
    "unary": 6,
    "binary": 6,
    "operator": 5,
    "reduce": 3,
    "several": 2,
    "join": 3,
    "convert": 3,
    "like": 1,
    "view": 12,
    "get": 3,
    "gather": 2,
    "write": 3,
    "write_number": 4,
    "write_tensor": 5,
    "augmented": 2,
    "set_item": 4,
    "put": 2,
    "out": 3,
    "reshape_in_place": 2,
    "switch": 4,
    "gradient": 3,
    "hook": 3,
    "function": 3,
    "checkpoint": 1,
    "module": 1,
    "backward": 5,
    "grad": 4,
    "double": 1,
    "drop": 1,
}
"""How often each kind of statement is written, relative to the others."""


def _fits(wanted: Callable[[Any], bool], tensor: Any) -> bool:
    try:
        return wanted(tensor)
    except RuntimeError:  # a view that may not be any more says so when its history is asked for
        return False


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _broadcasts(shape: Any, other: Any, into: bool = False) -> bool:
    """Whether two shapes broadcast together, or the first into the second."""
    pairs = zip(reversed(tuple(shape)), reversed(tuple(other)), strict=False)
    return all(a in (1, b) or (b == 1 and not into) for a, b in pairs)
