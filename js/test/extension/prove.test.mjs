// The proofs equal those of bridge/internal/proof. A listener learns nothing without a proof of its
// own.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { answer, prove, whereOf } from "../../../dist/test/extension.mjs";

const file = new URL("../../../bridge/internal/proof/testdata/vectors.json", import.meta.url);
const vectors = JSON.parse(await readFile(file, "utf8"));

test("the vectors", async () => {
  assert.ok(vectors.length > 0);
  for (const { secret, where, client, server, gatewayProof, clientProof } of vectors)
    assert.equal(await answer(secret, where, client, server, gatewayProof), clientProof);
});

test("a gateway's proof that is another's, or none, is answered with nothing", async () => {
  const [{ secret, where, client, server, gatewayProof, clientProof }, other] = vectors;
  for (const [why, ...args] of [
    ["another secret", secret + "x", where, client, server, gatewayProof],
    ["another address", secret, "127.0.0.1:7434", client, server, gatewayProof],
    ["another nonce", secret, where, server, server, gatewayProof],
    ["the client's", secret, where, client, server, clientProof],
    ["another vector's", secret, where, client, server, other.gatewayProof],
    ["nothing", secret, where, client, server, ""],
    ["no nonce", secret, where, client, "", gatewayProof],
    ["no base64url", secret, where, client, server, "!".repeat(43)],
  ])
    await assert.rejects(answer(...args), why);
});

test("a squatter is told a nonce and nothing else", async () => {
  const proof = "a".repeat(43);
  for (const says of [
    "",
    "{",
    "null",
    "{}",
    `{"type":"pagewire:tab"}`,
    `{"type":"pagewire:proof"}`,
    JSON.stringify({ type: "pagewire:proof", nonce: proof, proof }),
    JSON.stringify({ type: "pagewire:proof", nonce: 7, proof: [] }),
  ]) {
    const sent = [];
    const talk = { send: (text) => sent.push(text), next: async () => says };
    await assert.rejects(prove("the secret", "ws://127.0.0.1:7433/page", talk), /127\.0\.0\.1:7433 does not prove/);
    assert.equal(sent.length, 1);
    assert.match(sent[0], /^\{"type":"pagewire:hello","nonce":"[\w-]{43}"\}$/);
  }
});

test("the address is that of the other end", () => {
  for (const [url, where] of [
    ["ws://127.0.0.1:7433/page", "127.0.0.1:7433"],
    ["ws://[::1]:7433/page", "[::1]:7433"],
    ["ws://127.0.0.1/page", "127.0.0.1:80"],
    ["wss://127.0.0.1/page", "127.0.0.1:443"],
  ])
    assert.equal(whereOf(url), where);
});
