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

assert client.delete("images", "layers", "numbers", "none") == 3
assert client.dbsize() == 0
print("all well")
