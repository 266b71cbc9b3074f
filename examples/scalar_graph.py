"""Walk the graph that autograd records, on scalars small enough to check by hand.

    python examples/scalar_graph.py

Four parts: an expression and its graph as an indented tree, with the gradient that reached each node and what the node
saved; one neuron; a derivative that has a graph of its own; and a multilayer perceptron of single numbers, after
micrograd, that learns XOR.
"""

import argparse
import random
from collections import Counter
from itertools import pairwise

import gradscope as gs


class Picture:
    """The graph under a tensor: every node, what it saved, and the gradient that reaches it.

    Saved tensors are freed as soon as their node has run, so they are read here, before backward. A prehook on each
    node catches the gradient that arrives.

    Parameters
    ----------
    root : Tensor
        Where to start; its ``grad_fn`` becomes the root of the tree.
    **names : Tensor
        Leaves to be shown by name.
    """

    def __init__(self, root, **names):
        self.root = root.grad_fn
        self.names = {id(tensor): name for name, tensor in names.items()}
        self.saved = {}
        self.gradients = {}
        self.handles = []
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if node in self.saved:
                continue
            self.saved[node] = saved_values(node)
            self.handles.append(node.register_prehook(self.catcher(node)))
            waiting.extend(parent for parent, _ in node.next_functions if parent is not None)

    def catcher(self, node):
        """Return a prehook that notes the gradients arriving at `node`; returning None leaves them as they are."""

        def catch(grad_outputs):
            self.gradients[node] = grad_outputs

        return catch

    def close(self):
        """Take the hooks off the graph."""
        for handle in self.handles:
            handle.remove()

    def show(self):
        """Print the tree. A node that several others feed on is printed once in full and then referred to."""
        numbers = {}
        waiting = [(self.root, 0)]
        while waiting:
            node, depth = waiting.pop()
            indent = "  " * depth
            if node in numbers:
                print(f"{indent}-> #{numbers[node]} {node.name()}, above")
                continue
            numbers[node] = len(numbers)
            print(f"{indent}#{numbers[node]} {self.describe(node)}")
            waiting.extend((parent, depth + 1) for parent, _ in reversed(node.next_functions) if parent is not None)

    def describe(self, node):
        """Return one line about `node`."""
        line = node.name()
        if hasattr(node, "variable"):
            name = self.names.get(id(node.variable), "a leaf")
            line += f" of {name} = {short(node.variable)}"
        if node in self.gradients:
            line += "   grad " + ", ".join(short(grad) for grad in self.gradients[node])
        if self.saved[node]:
            line += "   saved " + ", ".join(f"{name} = {short(value)}" for name, value in self.saved[node].items())
        return line


def saved_values(node):
    """Return what `node` keeps for its backward formula, by name: the values behind its ``_saved_*`` attributes."""
    names = [name for name in dir(node) if name.startswith("_saved_")]
    values = {name.removeprefix("_saved_"): getattr(node, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def short(value):
    """Return a number, or a tensor of one number, in a few characters."""
    if isinstance(value, gs.Tensor):
        value = value.item()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def scalar(value):
    """Return a leaf: a tensor of one number whose gradient is wanted."""
    return gs.tensor(float(value), requires_grad=True)


class Neuron:
    """``tanh(w·x + b)``, or ``w·x + b`` where `linear`, with every weight a tensor of its own."""

    def __init__(self, inputs, rng, linear=False):
        self.weights = [scalar(rng.uniform(-1, 1)) for _ in range(inputs)]
        self.bias = scalar(0.0)
        self.linear = linear

    def __call__(self, values):
        total = self.bias
        for weight, value in zip(self.weights, values, strict=True):
            total = total + weight * value
        return total if self.linear else total.tanh()

    def parameters(self):
        """Return the weights and the bias."""
        return [*self.weights, self.bias]


class Network:
    """Layers of neurons; the last layer is linear.

    Parameters
    ----------
    sizes : list of int
        The number of inputs, then the number of neurons in each layer.
    rng : random.Random
    """

    def __init__(self, sizes, rng):
        last = len(sizes) - 2
        self.layers = [
            [Neuron(inputs, rng, linear=number == last) for _ in range(outputs)]
            for number, (inputs, outputs) in enumerate(pairwise(sizes))
        ]

    def __call__(self, values):
        for layer in self.layers:
            values = [neuron(values) for neuron in layer]
        return values[0]

    def parameters(self):
        """Return every parameter of every neuron."""
        return [parameter for layer in self.layers for neuron in layer for parameter in neuron.parameters()]


def show_expression():
    """Print the graph of an expression in which one value is used twice."""
    a, b, c = scalar(2), scalar(-3), scalar(10)
    product = a * b
    loss = (product + c) * product.exp()
    picture = Picture(loss, a=a, b=b, c=c)
    loss.backward()
    print("(a * b + c) * exp(a * b)")
    picture.show()
    picture.close()
    print(f"a.grad {short(a.grad)}, b.grad {short(b.grad)}, c.grad {short(c.grad)}")


def show_neuron():
    """Print the graph of one neuron with two inputs."""
    neuron = Neuron(2, random.Random(0))
    output = neuron([0.5, -1.0])
    picture = Picture(output, w0=neuron.weights[0], w1=neuron.weights[1], b=neuron.bias)
    output.backward()
    print("tanh(b + w0 * 0.5 + w1 * -1)")
    picture.show()
    picture.close()


def show_second_derivative():
    """Print the graph of a derivative: with ``create_graph=True`` the backward pass is recorded as well."""
    x = scalar(2)
    (slope,) = gs.autograd.grad(x**3, x, create_graph=True)
    picture = Picture(slope, x=x)
    slope.backward()
    print(f"d(x ** 3)/dx = 3 x ** 2 = {short(slope)} at x = 2")
    picture.show()
    picture.close()
    print(f"d2(x ** 3)/dx2 = 6 x = {short(x.grad)}")


def learn_xor(steps, seed):
    """Train a network of 13 single-number parameters on XOR and say what its graph is made of."""
    network = Network([2, 3, 1], random.Random(seed))
    parameters = network.parameters()
    samples = [((-1.0, -1.0), -1.0), ((-1.0, 1.0), 1.0), ((1.0, -1.0), 1.0), ((1.0, 1.0), -1.0)]
    for step in range(1, steps + 1):
        loss = sum((network(inputs) - wanted) ** 2 for inputs, wanted in samples) / len(samples)
        loss.backward()
        with gs.no_grad():
            for parameter in parameters:
                parameter -= 0.2 * parameter.grad
                parameter.grad = None
        if step == 1 or step % (steps // 4) == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    for inputs, wanted in samples:
        print(f"{inputs} -> {network(inputs).item():+.3f}, wanted {wanted:+.0f}")
    kinds = Counter(node.name() for node in Picture(network(samples[0][0])).saved)
    print("the graph of one output:", ", ".join(f"{count} {name}" for name, count in kinds.most_common()))


def main():
    """Run the four parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="training steps on XOR (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=3, help="seed of its weights (default: %(default)s)")
    args = parser.parse_args()
    if args.steps < 4:
        parser.error("--steps must be at least 4")
    parts = (show_expression, show_neuron, show_second_derivative, lambda: learn_xor(args.steps, args.seed))
    for number, part in enumerate(parts, start=1):
        print(f"{number}.", end=" ")
        part()
        print()


if __name__ == "__main__":
    main()
