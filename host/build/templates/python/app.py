"""The tools of `wit/plugin.wit`."""

import math

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tools


class Tools(exports.Tools):
    def echo(self, text: str) -> str:
        return text

    def add(self, a: int, b: int) -> int:
        return a + b

    def greet(self, person: tools.Person) -> str:
        if not person.name:
            raise Err("the name is empty")
        if person.age is None:
            return f"Hello, {person.name}!"
        return f"Hello, {person.name} ({person.age})!"

    def areas(self, shapes: list[tools.Shape]) -> list[float]:
        return [area(shape) for shape in shapes]

    def start_counter(self, value: int) -> "Counter":
        return Counter(value)


class Counter(tools.Counter):
    def __init__(self, value: int) -> None:
        self.value = value

    def increment(self, by: int) -> int:
        self.value += by
        return self.value


def area(shape: tools.Shape) -> float:
    match shape:
        case tools.Shape_Circle(radius):
            return math.pi * radius**2
        case tools.Shape_Square(side):
            return side**2
        case _:
            return 0.0
