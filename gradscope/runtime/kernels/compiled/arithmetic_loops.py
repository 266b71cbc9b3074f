"""Arithmetic of rows with one row, or with a number for each of them."""

from __future__ import annotations

from .jit import IN1, IN2, OUT2, i8, kernel

ADD, SUBTRACT, SUBTRACT_FROM, MULTIPLY, DIVIDE, DIVIDE_BY = range(6)
"""What is computed of x and y: x + y, x - y, y - x, x * y, x / y, y / x."""


@kernel(IN2, IN1, i8, i8, i8, OUT2)
def beside_row(x, row, operation, begin, end, result):
    for i in range(begin, end):
        of, to = x[i], result[i]
        if operation == ADD:
            for j in range(of.size):
                to[j] = of[j] + row[j]
        elif operation == SUBTRACT:
            for j in range(of.size):
                to[j] = of[j] - row[j]
        elif operation == SUBTRACT_FROM:
            for j in range(of.size):
                to[j] = row[j] - of[j]
        elif operation == MULTIPLY:
            for j in range(of.size):
                to[j] = of[j] * row[j]
        elif operation == DIVIDE:
            for j in range(of.size):
                to[j] = of[j] / row[j]
        else:
            for j in range(of.size):
                to[j] = row[j] / of[j]


@kernel(IN2, IN1, i8, i8, i8, OUT2)
def beside_numbers(x, numbers, operation, begin, end, result):
    for i in range(begin, end):
        of, to, number = x[i], result[i], numbers[i % numbers.size]
        if operation == ADD:
            for j in range(of.size):
                to[j] = of[j] + number
        elif operation == SUBTRACT:
            for j in range(of.size):
                to[j] = of[j] - number
        elif operation == SUBTRACT_FROM:
            for j in range(of.size):
                to[j] = number - of[j]
        elif operation == MULTIPLY:
            for j in range(of.size):
                to[j] = of[j] * number
        elif operation == DIVIDE:
            for j in range(of.size):
                to[j] = of[j] / number
        else:
            for j in range(of.size):
                to[j] = number / of[j]
