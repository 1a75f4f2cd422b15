"""python-socketio: servers that share their clients, and a process that only emits."""

import asyncio
import logging

import socketio
from aiohttp import web

from scenario import equal, main


async def serve(place):
    """Starts a server on a free port; returns it and its address."""
    server = socketio.AsyncServer(
        async_mode="aiohttp", client_manager=socketio.AsyncRedisManager(place.url, logger=logging.getLogger())
    )
    app = web.Application()
    server.attach(app)

    @server.event
    async def join(sid, room):
        await server.enter_room(sid, room)
        return "joined"

    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return server, "http://127.0.0.1:%d" % site._server.sockets[0].getsockname()[1]


def rooms(place):
    """An event reaches clients of two servers, also from a process that has no client."""

    async def story():
        received = asyncio.Queue()
        clients = []
        for name in ("ada", "grace"):
            server, address = await serve(place)
            client = socketio.AsyncClient()
            client.on("news", lambda data, name=name: received.put_nowait((name, data)))
            await client.connect(address)
            equal(await client.call("join", "room"), "joined")
            clients.append(client)
        await asyncio.sleep(0.5)
        await server.emit("news", {"n": 1}, room="room")
        first = sorted([await asyncio.wait_for(received.get(), 10) for _ in "ab"])
        equal(first, [("ada", {"n": 1}), ("grace", {"n": 1})])
        emitter = socketio.RedisManager(place.url, write_only=True)
        emitter.emit("news", {"n": 2}, room="room")
        second = sorted([await asyncio.wait_for(received.get(), 10) for _ in "ab"])
        equal(second, [("ada", {"n": 2}), ("grace", {"n": 2})])
        for client in clients:
            await client.disconnect()

    asyncio.run(story())


main(globals())
