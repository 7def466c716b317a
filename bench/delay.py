"""A proxy that is a slow line: so many bits a second and milliseconds, where the kernel has no traffic control.

    client -> [ 10 ms, 1 Gbit/s ] -> server        each way has the rate for all connections together
           <- [ 10 ms, 1 Gbit/s ] <-

Bytes leave when their turn on the line has come and half of the round trip is over. It takes CPU of the machine, as a
network card does not: some 0.5 s for a GB.
"""

import argparse
import asyncio
import socket

CHUNK = 64 << 10
# Bytes on their way, of one connection and direction: more than a round trip takes.
UNDER_WAY_MAX = 8 << 20


class Line:
    """One direction: when it is free again."""

    def __init__(self, bits_per_second, delay):
        self.seconds_per_byte = 8 / bits_per_second if bits_per_second else 0.0
        self.delay = delay
        self.free_at = 0.0

    def arrives_at(self, count, now):
        self.free_at = max(self.free_at, now) + count * self.seconds_per_byte
        return self.free_at + self.delay


async def pass_on(reader, writer, line):
    loop = asyncio.get_running_loop()
    queue, room = asyncio.Queue(), asyncio.Semaphore(UNDER_WAY_MAX // CHUNK)

    async def read():
        try:
            while data := await reader.read(CHUNK):
                await room.acquire()
                queue.put_nowait((line.arrives_at(len(data), loop.time()), data))
        except ConnectionError:
            pass
        queue.put_nowait((loop.time() + line.delay, b""))

    reading = asyncio.create_task(read())
    try:
        while True:
            at, data = await queue.get()
            if (wait := at - loop.time()) > 0:
                await asyncio.sleep(wait)
            if not data:
                break
            writer.write(data)
            await writer.drain()
            room.release()
        writer.write_eof()
    except (ConnectionError, OSError):
        pass
    finally:
        reading.cancel()


async def serve(listen, to, bits_per_second, milliseconds):
    half = milliseconds / 2000
    there, back = Line(bits_per_second, half), Line(bits_per_second, half)

    async def connected(reader, writer):
        try:
            onward_reader, onward_writer = await asyncio.open_connection(*to)
        except OSError:
            writer.close()
            return
        for one in (writer, onward_writer):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(pass_on(reader, onward_writer, there), pass_on(onward_reader, writer, back))
        for one in (writer, onward_writer):
            one.close()

    server = await asyncio.start_server(connected, *listen, limit=CHUNK)
    print(f"listening on {listen[0]}:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--listen", type=address, default=("127.0.0.1", 0))
    parser.add_argument("--to", type=address, required=True)
    parser.add_argument("--bits", type=float, default=1e9, help="bits a second, 0 for no limit (default 1e9)")
    parser.add_argument("--ms", type=float, default=20, help="round trip (default 20)")
    given = parser.parse_args()
    asyncio.run(serve(given.listen, given.to, given.bits, given.ms))
