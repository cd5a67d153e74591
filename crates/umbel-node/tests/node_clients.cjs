// What users of ioredis and node-redis do with a host, in the clients' default settings; asserts
// are the test. Usage: script PORT. The clients are found through NODE_PATH.
const assert = require("node:assert/strict");
const Redis = require("ioredis");
const { createClient } = require("redis");

const port = Number(process.argv[2]);

async function withIoredis() {
  const client = new Redis(port);
  assert.equal(await client.ping(), "PONG");
  assert.deepEqual(await client.call("UMBEL.ADD", "images", "apple", "pear"), [1, 1]);
  assert.deepEqual(await client.call("UMBEL.WHO", "images", "apple"), [["here"]]);

  const pipeline = client.pipeline();
  for (let number = 0; number < 100; number++) pipeline.call("UMBEL.ADD", "numbers", number);
  assert.equal((await pipeline.exec()).filter(([error]) => error === null).length, 100);

  const results = await client.multi().call("UMBEL.ADD", "images", "fig").call("UMBEL.HAS", "images", "fig").exec();
  assert.deepEqual(results, [[null, [1]], [null, [1]]]);
  await assert.rejects(client.multi().call("UMBEL.ADD", "images").exec(), /EXECABORT/);
  await assert.rejects(client.call("UMBEL.WHOO", "images"), /did you mean UMBEL.WHO\?/);
  assert.equal(await client.ttl("images"), -1);
  assert.deepEqual((await client.keys("*")).sort(), ["images", "numbers"]);
  assert.equal(await client.del("images", "numbers"), 2);
  await client.quit();
}

async function withNodeRedis() {
  const client = createClient({ socket: { port } });
  const errors = [];
  client.on("error", (error) => errors.push(error));
  await client.connect();
  assert.equal(await client.ping(), "PONG");
  assert.deepEqual(await client.sendCommand(["UMBEL.ADD", "images", "apple"]), [1]);
  assert.deepEqual([...await client.bf.mAdd("seen", ["a", "b"])].map(Number), [1, 1]);
  const replies = await client.multi().addCommand(["UMBEL.ADD", "images", "fig"]).bf.exists("seen", "a").exec();
  assert.deepEqual([replies[0], Number(replies[1])], [[1], 1]);
  await assert.rejects(client.multi().addCommand(["UMBEL.ADD", "images"]).addCommand(["UMBEL.ADD", "images", "not added"]).exec());
  assert.deepEqual(await client.sendCommand(["UMBEL.HAS", "images", "not added"]), [0]);
  const found = [];
  for await (const keys of client.scanIterator()) found.push(...[keys].flat());
  assert.deepEqual(found.sort(), ["images", "seen"]);
  assert.equal(await client.del(["images", "seen"]), 2);
  await client.close();
  assert.deepEqual(errors, []);
}

withIoredis()
  .then(withNodeRedis)
  .then(() => console.log("all well"))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
