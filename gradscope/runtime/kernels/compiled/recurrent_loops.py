"""The gates of recurrent networks, of one step and of its derivative, in one pass over their rows.

Each loop begins at 0 and writes few arrays: the compiler then makes vectors of it.
"""

from __future__ import annotations

import numpy

from .jit import IN1, IN2, OUT2, kernel
from .jit.scalars import sigmoid, tanh

__all__ = ["gru", "gru_backward", "lstm", "lstm_backward"]

_ONE = numpy.float32(1)


@kernel(IN1, OUT2, IN2, OUT2, OUT2, OUT2)
def lstm(bias, gates, product, cell, cells, raw):
    """Write the gates, the next cell state (to both places) and what comes out of it."""
    size = cell.shape[1]
    for r in range(len(gates)):
        gate, given, state, kept, result = gates[r], product[r], cell[r], cells[r], raw[r]
        into, forget, new, out = gate[:size], gate[size : 2 * size], gate[2 * size : 3 * size], gate[3 * size :]
        given_new, bias_new = given[2 * size :], bias[2 * size :]
        for j in range(size):
            result[j] = tanh(new[j] + given_new[j] + bias_new[j])
        for j in range(4 * size):  # one gate too many, in one loop
            gate[j] = sigmoid(gate[j] + given[j] + bias[j])
        for j in range(size):
            new[j] = result[j]
            state[j] = forget[j] * state[j] + into[j] * result[j]
        for j in range(size):
            kept[j] = state[j]
            result[j] = out[j] * tanh(state[j])


@kernel(IN2, IN2, IN2, IN2, OUT2, OUT2)
def lstm_backward(gates, cells, cells_before, g_hidden, g_cell, g_gates):
    """Write the gradients of the gates before their activation, and that of the cell state before the step."""
    size = cells.shape[1]
    for r in range(len(gates)):
        gate, cell, before, g, g_state, place = gates[r], cells[r], cells_before[r], g_hidden[r], g_cell[r], g_gates[r]
        into, forget, new, out = gate[:size], gate[size : 2 * size], gate[2 * size : 3 * size], gate[3 * size :]
        g_into, g_forget, g_new = place[:size], place[size : 2 * size], place[2 * size : 3 * size]
        g_out = place[3 * size :]
        for j in range(size):
            squashed = tanh(cell[j])
            g_out[j] = g[j] * squashed * out[j] * (_ONE - out[j])
            g_state[j] += g[j] * out[j] * (_ONE - squashed * squashed)
        for j in range(size):
            g_into[j] = g_state[j] * new[j] * into[j] * (_ONE - into[j])
            g_new[j] = g_state[j] * into[j] * (_ONE - new[j] * new[j])
        for j in range(size):
            g_forget[j] = g_state[j] * before[j] * forget[j] * (_ONE - forget[j])
            g_state[j] *= forget[j]


@kernel(IN1, IN1, OUT2, IN2, OUT2, OUT2)
def gru(bias_ih, bias_hh, gates, product, kept, hidden):
    """Write the gates, the projected state that the reset gate is multiplied with, and the next state."""
    size = hidden.shape[1]
    for r in range(len(gates)):
        gate, given, projected, state = gates[r], product[r], kept[r], hidden[r]
        update, new, given_new = gate[size : 2 * size], gate[2 * size :], given[2 * size :]
        new_ih, new_hh = bias_ih[2 * size :], bias_hh[2 * size :]
        for j in range(2 * size):
            gate[j] = sigmoid(gate[j] + bias_ih[j] + given[j] + bias_hh[j])
        for j in range(size):
            projected[j] = given_new[j] + new_hh[j]
        for j in range(size):
            new[j] += new_ih[j] + projected[j] * gate[j]
        for j in range(size):
            new[j] = tanh(new[j])
        for j in range(size):
            state[j] = (state[j] - new[j]) * update[j] + new[j]


@kernel(IN2, IN2, IN2, OUT2, OUT2, OUT2)
def gru_backward(gates, kept, hidden_before, g_hidden, g_ih, g_hh):
    """Write the gradients of the projected input, of the projected state, and of the state but for its projection."""
    size = kept.shape[1]
    for r in range(len(gates)):
        gate, projected, before, g, into, back = gates[r], kept[r], hidden_before[r], g_hidden[r], g_ih[r], g_hh[r]
        reset, update, new = gate[:size], gate[size : 2 * size], gate[2 * size :]
        g_update, g_new, back_new = into[size : 2 * size], into[2 * size :], back[2 * size :]
        for j in range(size):
            g_new[j] = g[j] * (_ONE - update[j]) * (_ONE - new[j] * new[j])
            g_update[j] = g[j] * (before[j] - new[j]) * update[j] * (_ONE - update[j])
        for j in range(size):
            into[j] = g_new[j] * projected[j] * reset[j] * (_ONE - reset[j])
            back_new[j] = g_new[j] * reset[j]
        for j in range(size):
            g[j] *= update[j]
        for j in range(2 * size):
            back[j] = into[j]
