"""A library."""
from typing import Optional

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import catalog
from wit_world.imports import types
from wit_world.imports.types import Book, Genre, Marks


from catalog import Shelf


class Catalog(exports.Catalog):
    def open_shelf(self, name: str) -> Shelf:
        if name not in ("a", "b"):
            raise Err(types.ShelfError_NotFound(name))
        return Shelf(name, 2)

    def open_shelves(self, names: list[str]) -> list[Shelf]:
        return [Shelf(name, 2) for name in names]

    def checksum(self, data: bytes) -> int:
        return sum(data)

    def longest(self, words: list[str]) -> Optional[str]:
        return max(words, key=len) if words else None

    def parse_book(self, line: str) -> Book:
        title, by, author = line.partition(" by ")
        if not by:
            raise Err("there is no ` by `")
        return Book(title, None, [author], Genre.FICTION, Marks.NEW_ARRIVAL, (1, 0.5))

    def fail(self) -> None:
        raise Err(types.ShelfError_Closed())
