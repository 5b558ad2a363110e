"""A library."""
from typing import Optional

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import catalog
from wit_world.imports import types
from wit_world.imports.types import Book, Genre, Marks


class Shelf(catalog.Shelf):
    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self.content: list[Book] = []

    def id(self) -> str:
        return self.name

    def describe(self) -> catalog.Summary:
        return catalog.Summary(self.name, len(self.content), [b.title for b in self.content])

    def put(self, book: Book) -> int:
        if len(self.content) >= self.capacity:
            raise Err(types.ShelfError_Full(self.capacity))
        self.content.append(book)
        return len(self.content)

    def take(self, title: str) -> Book:
        for at, book in enumerate(self.content):
            if book.title == title:
                return self.content.pop(at)
        raise Err(types.ShelfError_NotFound(title))

    def books(self, genre: Optional[Genre]) -> list[Book]:
        return [b for b in self.content if genre is None or b.type == genre]

    @staticmethod
    def close(shelf: "Shelf") -> list[str]:
        return [b.title for b in shelf.content]
