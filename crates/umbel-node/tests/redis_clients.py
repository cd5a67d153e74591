"""What a user of redis-py does with a host; asserts are the test. Usage: script PORT PROTOCOL."""

import sys

import redis

port, protocol = int(sys.argv[1]), int(sys.argv[2])
client = redis.Redis(port=port, protocol=protocol, client_name="tester", socket_timeout=20)
me = b"here"

assert client.ping()
assert client.echo("hi") == b"hi"
assert client.client_getname() in (b"tester", "tester")
assert any(other["name"] == "tester" for other in client.client_list())
assert client.client_id() > 0
assert client.info()["server_name"] == "umbel"
assert client.config_get("maxclients") == {"maxclients": "10000"}
assert client.command_count() == len(client.command())

# Binary keys, exact answers.
key = bytes(range(256))
assert client.execute_command("UMBEL.ADD", "images", key, "apple", "apple") == [1, 1, 0]
assert client.execute_command("UMBEL.HAS", "images", key, "pear") == [1, 0]
assert client.execute_command("UMBEL.WHO", "images", key, "pear") == [[me], []]
assert client.execute_command("UMBEL.MISSING", "images", key, "pear") == [b"pear"]
assert client.execute_command("UMBEL.LOCATE", "images", "apple", "TIMEOUT", 500) == [me]
assert client.execute_command("UMBEL.ADDEX", "images", 60, "fig") == [1]
assert client.execute_command("UMBEL.REM", "images", key, "pear") == [1, 0]
assert client.execute_command("UMBEL.RESERVE", "layers", 0.01, 1000, "POLICY", "manual") == b"OK"
assert client.execute_command("UMBEL.POLICY", "layers") == b"manual"
assert client.execute_command("UMBEL.PUBLISH", "layers") == b"OK"
assert sorted(client.execute_command("UMBEL.SETS")) == [b"images", b"layers"]

# Names.
assert client.execute_command("UMBEL.ANNOUNCE", "names", "/a", "/a/b/") == [1, 1]
assert client.execute_command("UMBEL.MATCH", "names", "/a/b/c") == [b"/a/b", [me]]
assert client.execute_command("UMBEL.WITHDRAW", "names", "/a/b", "/c") == [1, 0]
assert client.execute_command("UMBEL.MATCH", "names", "/a/b", "CONFIRM", 500) == [b"/a", [me]]
assert client.execute_command("UMBEL.MATCH", "names", "/b") is None
assert client.delete("names") == 1

info = client.execute_command("UMBEL.INFO", "images")
info = info if protocol == 3 else dict(zip(info[::2], info[1::2]))
assert info[b"items"] == 2, info
hosts = client.execute_command("UMBEL.HOSTS")
first = hosts[0] if protocol == 3 else dict(zip(hosts[0][::2], hosts[0][1::2]))
assert first[b"name"] == me, hosts

# Redis's keys are sets.
assert client.dbsize() == 2
assert client.exists("images", "none") == 1
assert client.type("images") == b"umbel"
assert sorted(client.scan_iter(match="*a*", count=1)) == [b"images", b"layers"]

# Errors leave the connection as it was.
try:
    client.execute_command("UMBEL.INFO", "none")
    raise AssertionError("a set nobody has heard of was answered")
except redis.ResponseError as error:
    assert "no such set" in str(error), error
assert client.ping()

# A pipeline, with an error in the middle.
pipe = client.pipeline(transaction=False)
for number in range(1000):
    pipe.execute_command("UMBEL.ADD", "numbers", number)
pipe.execute_command("UMBEL.INFO", "none")
for number in range(1001):
    pipe.execute_command("UMBEL.WHO", "numbers", number)
replies = pipe.execute(raise_on_error=False)
assert replies[:1000] == [[1]] * 1000
assert isinstance(replies[1000], redis.ResponseError)
assert replies[1001:2001] == [[[me]]] * 1000

# A pipeline of redis-py is a transaction unless it is told otherwise.
pipe = client.pipeline()
pipe.execute_command("UMBEL.ADD", "numbers", "in a transaction")
pipe.execute_command("UMBEL.INFO", "none")
pipe.bf().add("items", "a")
pipe.execute_command("UMBEL.HAS", "numbers", "in a transaction")
replies = pipe.execute(raise_on_error=False)
assert replies[0] == replies[3] == [1] and replies[2] == 1, replies
assert isinstance(replies[1], redis.ResponseError), replies
assert client.delete("items") == 1

# One that is refused while it is queued discards all.
pipe = client.pipeline()
pipe.execute_command("UMBEL.ADD", "numbers", "discarded")
pipe.execute_command("UMBEL.ADD")
try:
    pipe.execute()
    raise AssertionError("a wrong command was accepted")
except redis.ResponseError as error:
    assert "wrong number of arguments" in str(error), error
assert client.execute_command("UMBEL.HAS", "numbers", "discarded") == [0]
try:
    client.transaction(lambda pipe: pipe.multi(), "numbers")
    raise AssertionError("WATCH was accepted")
except redis.ResponseError as error:
    assert "'WATCH' is not supported" in str(error), error
assert client.time()[0] > 0 and client.ttl("numbers") == -1
assert client.keys("num*") == [b"numbers"]

# Filters, as redis-py's own commands have them.
bloom, cuckoo = client.bf(), client.cf()


def field(info, attribute, name):
    """A field of INFO, which redis-py makes an object of in RESP2 and leaves a map in RESP3."""
    if not isinstance(info, dict):
        return info.get(attribute)
    return {k if isinstance(k, str) else k.decode(): v for k, v in info.items()}[name]


assert bloom.reserve("seen", 0.001, 3, noScale=True)
assert bloom.madd("seen", "a", "b") == [1, 1]
assert bloom.mexists("seen", "a", "c") == [1, 0]
assert bloom.insert("seen", ["b", "c"]) == [0, 1]
full = bloom.madd("seen", "a", "d")
assert full[0] == 0 and "non scaling filter is full" in str(full[1]), full
assert bloom.card("seen") == 3 and bloom.card("none") == 0
assert field(bloom.info("seen"), "capacity", "Capacity") == 3, bloom.info("seen")
assert cuckoo.insert("visits", ["a", "a"]) == [1, 1]
assert cuckoo.count("visits", "a") == 2 and cuckoo.delete("visits", "a") == 1
chunk, dumped = 0, []
while True:
    chunk, data = cuckoo.scandump("visits", chunk)
    if chunk == 0:
        assert data is None
        break
    dumped.append((chunk, data))
for chunk, data in dumped:
    assert cuckoo.loadchunk("copy", chunk, data)
assert field(cuckoo.info("copy"), "insertedNum", "Number of items inserted") == 1, cuckoo.info("copy")
assert client.delete("seen", "visits", "copy") == 3

assert client.delete("images", "layers", "numbers", "none") == 3
assert client.dbsize() == 0
print("all well")
