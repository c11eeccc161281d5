// What pagewire/dev gives agents of an app's state, without a page around it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { plain, redacted } from "../../../dist/test/page.mjs";

globalThis.Node ??= class {};
globalThis.Window ??= class {};
const secret = "hunter2xQ";
/** Joined here, so that no tool takes a part of this file for a secret. */
const of = (...parts) => parts.join("");
const json = (value) => JSON.stringify(plain(value));

test("a member's name tells a secret", () => {
  for (const name of [
    ..."password passwordConfirm pwd user.password clientSecret secretAccessKey OPENAI_API_KEY apikey".split(" "),
    ..."accessToken accesstoken ACCESS_TOKEN csrfmiddlewaretoken csrfValue sessionId session_id sid".split(" "),
    ..."authorizationHeader Set-Cookie cookieHeader jwt signingKey account_key mnemonic otp пароль".split(" "),
  ]) {
    assert.equal(json({ [name]: secret }), JSON.stringify({ [name]: "[redacted]" }));
    assert.equal(json(new Map([[name, { deep: [secret] }]])), JSON.stringify({ [name]: { deep: ["[redacted]"] } }));
    assert.ok(!json({ list: [[name, secret]], fields: [{ name, value: secret }] }).includes(secret), name);
  }
  const others = {
    author: "Ada",
    session: "morning",
    key: 7,
    stop: [1, 2],
    monkey: "m",
    name: "total",
    value: 3,
    "Aisle 3, 1": "tea",
  };
  assert.deepEqual(plain(others), others);
});

test("a text's shape tells a secret", () => {
  const long = "Zx9Qw7Er5Ty3Ui1Op0AsDf";
  for (const text of [
    of("https://a.test/cb?state=1&code=", secret),
    of("https://a.test/#id_token=", secret, "&x=1"),
    of("https://ada:", secret, "@a.test/"),
    of("https://store.test/c?sv=1&sig=", secret),
    of("user=ada&password=", secret),
    of("DB_PASSWORD=", secret, "\nHOME=/"),
    of('{"user":"ada","password":"correct ', secret, '"}'),
    JSON.stringify({ body: of('{"access_token":"', secret, '"}') }),
    of("authorization: bearer ", secret),
    of("Cookie: a=1; sid=", secret),
    of("Your password: ", secret, ", until you change it"),
    of("X-Api-Key: ", secret),
    of("Server=db;Password=", secret, ";"),
    of("-----BEGIN PGP PRIVATE KEY", " BLOCK-----\n", secret),
    of("ghp", "_", secret, long),
    of("ya29", ".", secret, long),
    of("https://hooks.slack.com", "/services/", secret),
    of("paid with 4111 1111", " 1111 1111 hunter2xQ").replace("hunter2xQ", ""),
  ]) {
    const got = redacted(text);
    assert.ok(got.includes("[redacted]") && !got.includes(secret) && !got.includes("1111"), got);
    assert.equal(redacted(got), got, "once more it stays");
  }
  for (const text of [
    "Unexpected token: ')'",
    "Password: must be 8 characters",
    "Tokens: 1234567 of 4k",
    "const token = next();",
    "https://a.test/?page=2",
    "src/cart/index.ts:4",
  ])
    assert.equal(redacted(text), text);
});

// One time in milliseconds of ten has the digits of a card.
test("a time is no card", () => {
  const times = Array.from({ length: 100 }, (_, i) => 1_795_917_462_987 + i);
  assert.deepEqual(plain(times), times);
  assert.equal(plain(of("4111111", "111111111")), "[redacted]");
});
