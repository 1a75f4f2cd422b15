"""channels-redis: both layers."""

import asyncio

from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from scenario import equal, main


async def story(first, second):
    """Messages to a channel and to a group arrive; who left the group gets none."""
    mine, other = await first.new_channel(), await second.new_channel()
    await second.send(mine, {"type": "hello", "n": 1})
    equal(await asyncio.wait_for(first.receive(mine), 10), {"type": "hello", "n": 1})
    await first.group_add("room", mine)
    await second.group_add("room", other)
    await second.group_send("room", {"type": "chat", "text": "hi"})
    equal(await asyncio.wait_for(first.receive(mine), 10), {"type": "chat", "text": "hi"})
    equal(await asyncio.wait_for(second.receive(other), 10), {"type": "chat", "text": "hi"})
    await first.group_discard("room", mine)
    await second.group_send("room", {"type": "chat", "text": "who is there"})
    equal((await asyncio.wait_for(second.receive(other), 10))["text"], "who is there")
    try:
        await asyncio.wait_for(first.receive(mine), 0.5)
    except asyncio.TimeoutError:
        return
    raise AssertionError("a message for a group that was left")


def layer(place):
    """The layer that keeps messages: channels, groups, capacity."""

    async def run():
        first, second = (RedisChannelLayer(hosts=[place.url], capacity=3) for _ in "ab")
        await story(first, second)
        from channels.exceptions import ChannelFull

        for n in range(3):
            await first.send("full", {"type": "n", "n": n})
        try:
            await first.send("full", {"type": "n"})
        except ChannelFull:
            await first.flush()
            return
        raise AssertionError("the channel takes more than its capacity")

    asyncio.run(run())


def pubsub_layer(place):
    """The layer on messages of Redis."""

    async def run():
        first, second = (RedisPubSubChannelLayer(hosts=[place.url]) for _ in "ab")
        await story(first, second)

    asyncio.run(run())


main(globals())
