/**
 * The conversations in testdata: each file shows one rule or story of a host of Views. UPDATE=1
 * rewrites what is said in them. testdata/README.md explains the words.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Host } from "../../../dist/test/views.host.mjs";

const folder = new URL("testdata/", import.meta.url);
const META = "io.modelcontextprotocol/";
const modern = {
  [META + "protocolVersion"]: "2026-07-28",
  [META + "clientInfo"]: { name: "pagewire", version: "0" },
  [META + "clientCapabilities"]: {},
};
const MODERN = `"_meta":${JSON.stringify(modern)}`;

/** A message in the short form of the files. */
const short = ({ jsonrpc: _, ...m }) => JSON.stringify(m).replace(MODERN, "MODERN");
/** STREAM n is the _meta of a message on the listen "pagewire:n". */
const long = (text) => {
  const whole = text
    .replace("MODERN", MODERN)
    .replace(/STREAM (\d+)/, `"_meta":{"${META}subscriptionId":"pagewire:$1"}`);
  return whole.startsWith("{") ? { jsonrpc: "2.0", ...JSON.parse(whole) } : whole;
};

/** Plays the lines of a conversation, and returns them with what is said. */
function play(lines, options) {
  const out = [];
  const say = (text) => out.push(`    ${text}`);
  const views = new Map();
  let now = 0;
  let due;
  const home = { now: () => now, wake: (at) => (due = at), toServer: (m) => say(`S< ${short(m)}`) };
  const host = new Host(options.Modern ? "modern" : "legacy", home, options);
  const receive = (n, m) => views.has(n) && host.receive(views.get(n), m);

  const words = {
    open(n) {
      const port = host.open((m) => say(`${n}< ${short(m)}`));
      if (port) views.set(n, port);
      else say(`error: ${host.full}`);
    },
    hello(n) {
      receive(n, { jsonrpc: "2.0", id: 0, method: "ui/initialize", params: {} });
      receive(n, { jsonrpc: "2.0", method: "ui/notifications/initialized" });
    },
    close: (n) => host.close(views.get(n)),
    teardown: (n) => host.teardown(views.get(n)),
    learn: (uri) => host.learn(uri),
    lost: () => host.connection(null),
    back: (era) => host.connection(era || "legacy"),
    at(time) {
      for (const end = Number(time); due <= end; host.tick()) {
        assert.ok(due > now - 10_000, `a deadline that never passes: ${due}`);
        now = Math.max(now, due);
        say(`(${now})`);
      }
      now = Number(time);
    },
    stats() {
      const { views, subscriptions, watched, upstream, streams, pending, known } = host.stats();
      const counts = Object.entries({ views, subscriptions, watched, upstream, streams, pending, known });
      say(counts.map(([name, n]) => `${name} ${n}`).join(" "));
    },
  };
  for (const line of lines) {
    if (line.startsWith("    ")) continue; // what was said before
    out.push(line);
    if (!line || line.startsWith("#")) continue;
    const [, word, times, rest] = /^(\S+?)(?:\*(\d+))?(?: (.*))?$/.exec(line);
    for (let i = 0; i < (times ?? 1); i++) {
      const text = rest?.replaceAll("$i", String(i)) ?? "";
      if (!word.endsWith(">")) words[word](text);
      else if (!(word === "S>" ? host.fromServer(long(text)) : receive(word.slice(0, -1), long(text))))
        say("not taken");
    }
  }
  return out;
}

for (const name of readdirSync(folder).filter((name) => name.endsWith(".txtar"))) {
  test(`conversation ${name}`, () => {
    const file = new URL(name, folder);
    const [prose, ...sections] = readFileSync(file, "utf8").split(/^-- (?=\w+ --\n)/m);
    const options = {};
    let written = prose;
    for (const section of sections) {
      const [title, ...lines] = section.trimEnd().split("\n");
      for (const line of title === "options --" ? lines : []) {
        const [option, value] = line.split(" ");
        options[option] = value === undefined || Number(value);
      }
      const said = title === "options --" ? lines : play(lines, options);
      if (!process.env.UPDATE) assert.deepEqual(said, lines);
      written += `-- ${[title, ...said].join("\n")}\n`;
    }
    if (process.env.UPDATE) writeFileSync(file, written);
  });
}
