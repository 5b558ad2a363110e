import wit_world
from wit_world import exports
from componentize_py_types import Err
import componentize_py_async_support as support


class Tools(exports.Tools):
    async def double_later(self, value):
        return value * 2

    async def check(self, name):
        if not name:
            raise Err("the name is empty")
        return name + " is a name"

    async def count(self, to):
        writer, reader = wit_world.u32_stream()

        async def write():
            with writer:
                await writer.write_all(list(range(1, to + 1)))

        support.spawn(write())
        return reader

    async def speak(self, text):
        writer, reader = wit_world.byte_stream()

        async def write():
            with writer:
                await writer.write_all(text.encode())

        support.spawn(write())
        return reader

    async def promise(self, value):
        writer, reader = wit_world.string_future(lambda: "")

        async def write():
            await writer.write(value)

        support.spawn(write())
        return reader

    async def sum(self, numbers):
        total = 0
        with numbers:
            while not numbers.writer_dropped:
                total += sum(await numbers.read(64))
        return total

    def plain(self, value):
        return value + 1
