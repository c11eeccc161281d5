import { useMemo, useState } from "preact/hooks";
import { type Entry, List, Marked, Messages, ResourceLines, Uri, ways } from "../parts/parts.tsx";
import { Rows } from "../parts/rows.tsx";
import { clock, count, number, paths, size } from "../parts/text.ts";
import { theme, toggleTheme } from "../parts/theme.ts";
import type { Agent, Feed, Open, Page, Tool } from "./feed.ts";
import { Plot } from "./plot.tsx";
import { warnings } from "./warnings.ts";

const status = { connecting: "connecting", connected: "connected", lost: "connection lost, trying again" };

export function App({ feed, redraw }: { feed: Feed; redraw: () => void }) {
  const [tab, setTab] = useState<number>();
  const is = theme();
  return (
    <>
      <header>
        <h1 class="brand">
          Pagewire <small>inspector {feed.version}</small>
        </h1>
        <p class={`status ${feed.status}`} role="status">
          {feed.status === "refused" ? `not shown: ${feed.why}` : status[feed.status]}
        </p>
        <button id="theme" onClick={() => toggleTheme(redraw)}>
          {is === "dark" ? "Light theme" : "Dark theme"}
        </button>
      </header>
      {feed.version && (
        <>
          <Plots feed={feed} />
          <main>
            <Tabs feed={feed} tab={tab} setTab={setTab} />
            <Resources feed={feed} tab={tab} />
            <Values feed={feed} />
            <Side feed={feed} />
            <Log feed={feed} />
          </main>
        </>
      )}
    </>
  );
}

function Plots({ feed }: { feed: Feed }) {
  const s = feed.stats;
  const mean = s?.latency.count ? `${((s.latency.seconds / s.latency.count) * 1000).toFixed(2)} ms` : "–";
  const ended = Object.entries(s?.ended ?? {});
  const reasons = ended.map(([reason, links]) => `${links} × ${reason}`).join("\n");
  const totals = [
    ["time of a read", mean],
    ["reads that wait", `${s?.engine.calls ?? 0}`],
    ["changes of pages", number.format(s?.updates ?? 0)],
    ["sent to agents", number.format(s?.engine.updates ?? 0)],
    ["memory for pages", size(s?.descriptors ?? 0)],
    ["connections ended", number.format(ended.reduce((n, [, links]) => n + links, 0)), reasons],
  ] as const;
  return (
    <section class="plots" aria-label="Rates">
      <Plot label="updates" series={feed.updates} height={44} format={(n) => `${number.format(n)}/s`} />
      <Plot label="reads" series={feed.reads} height={44} format={(n) => `${number.format(n)}/s`} />
      <Plot label="messages" series={feed.messages} height={44} format={(n) => `${number.format(n)}/s`} />
      <Plot label="traffic" series={feed.bytes} height={44} format={(n) => `${size(n)}/s`} />
      <dl class="totals">
        {totals.map(([name, total, title]) => (
          <div key={name} title={title}>
            <dt>{name}</dt>
            <dd>{total}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Tabs({ feed, tab, setTab }: { feed: Feed; tab: number | undefined; setTab: (n: number | undefined) => void }) {
  const tabs = useMemo(() => {
    const all = new Map<number, Page[]>();
    for (const p of feed.pages) all.set(p.tab, [...(all.get(p.tab) ?? []), p]);
    return [...all];
  }, [feed.pages]);
  return (
    <section class="tabs" aria-labelledby="tabs-title">
      <h2 id="tabs-title">
        Tabs <span class="n">{tabs.length}</span>
      </h2>
      <Rows
        id="tabs"
        label="Tabs: select one to see its resources alone"
        items={tabs}
        height={46}
        keyOf={([n]) => n}
        selected={([n]) => n === tab}
        select={([n]) => setTab(n === tab ? undefined : n)}
        empty="No page is attached."
      >
        {([n, pages]) => {
          const top = pages.find((p) => !p.frame) ?? pages[0]!;
          const resources = pages.reduce((n, p) => n + p.resources, 0);
          return (
            <>
              <span class="line">
                <b class="n">{n}</b> <span class="text">{top.title || top.url}</span>
                {top.focused && <span class="tag">focused</span>}
                {top.absent && <span class="tag warn">reloading</span>}
                <Warned of={pages.flatMap((p) => p.reports ?? [])} />
              </span>
              <span class="line dim">
                <span class="text">{top.origin || top.url}</span> {top.transport} · {resources}
                {pages.length > 1 && ` · ${count(pages.length - 1, "frame")}`}
              </span>
            </>
          );
        }}
      </Rows>
    </section>
  );
}

export function Resources({ feed, tab }: { feed: Feed; tab: number | undefined }) {
  const [filter, setFilter] = useState("");
  const items = useMemo(() => {
    const want = filter.trim().toLowerCase();
    return feed.resources.filter(
      (r) =>
        (tab === undefined || r.tab === tab) &&
        (want === "" || `${r.uri}\n${r.name}\n${r.title ?? ""}`.toLowerCase().includes(want)),
    );
  }, [feed.resources, tab, filter]);
  return (
    <section class="resources" aria-labelledby="resources-title">
      <h2 id="resources-title">
        Resources <span class="n">{number.format(items.length)}</span>
        {feed.allResources > feed.resources.length && (
          <small>
            the first {number.format(feed.resources.length)} of {number.format(feed.allResources)}
          </small>
        )}
        {tab !== undefined && <small>of tab {tab}</small>}
      </h2>
      <input
        type="search"
        placeholder="Filter"
        aria-label="Filter resources"
        value={filter}
        onInput={(e) => setFilter(e.currentTarget.value)}
      />
      <Rows
        id="resources"
        label="Resources: select some to see their values"
        items={items}
        height={46}
        multiple
        keyOf={(r) => r.uri}
        selected={(r) => feed.open.has(r.uri)}
        select={(r) => !r.template && feed.toggle(r.uri)}
        empty={feed.resources.length === 0 ? "No page offers a resource." : "No resource fits."}
      >
        {(r) => (
          <ResourceLines name={r.name} uri={r.uri}>
            {r.template && <span class="tag">template</span>}
            <Warned of={warnings(r, feed.open.get(r.uri))} />
            {feed.watched.has(r.uri) && <span class="tag live">watched</span>}
            {tab === undefined && <span class="dim">tab {r.tab}</span>}
          </ResourceLines>
        )}
      </Rows>
    </section>
  );
}

export function Values({ feed }: { feed: Feed }) {
  return (
    <section class="values" aria-labelledby="values-title">
      <h2 id="values-title">
        Values <span class="n">{feed.open.size}</span>
      </h2>
      {feed.open.size === 0 && <p class="empty">Select a resource to see what it reads as, live.</p>}
      <div class="cards">
        {[...feed.open].map(([uri, open]) => (
          <Card key={uri} feed={feed} uri={uri} open={open} />
        ))}
      </div>
    </section>
  );
}

const Warned = ({ of }: { of: string[] }) =>
  of.length > 0 ? (
    <span class="tag warn" title={of.join("\n")}>
      {count(of.length, "warning")}
    </span>
  ) : null;

// tokens is the usual estimate of a text's price for a model.
const tokens = (bytes: number) => `about ${count(Math.ceil(bytes / 4), "token")} (bytes / 4)`;

const encoder = new TextEncoder();

function Card({ feed, uri, open }: { feed: Feed; uri: string; open: Open }) {
  const { value: v, change } = open;
  const resource = feed.resources.find((r) => r.uri === uri);
  return (
    <article class="card" data-uri={uri}>
      <h3>
        <span class="text">{resource?.name ?? uri}</span>
        <button class="quiet" aria-label={`Close ${resource?.name ?? uri}`} onClick={() => feed.toggle(uri)}>
          ×
        </button>
      </h3>
      <p class="line dim mono">
        <Uri uri={uri} />
      </p>
      <Plot label="updates" series={open.rate} height={24} format={(n) => `${n}/s`} />
      {v && (
        <p class="dim">
          {clock(v.at)} · {v.mimeType || "text"} · {size(v.bytes)}, {tokens(v.bytes)} · {count(open.changes, "change")}
        </p>
      )}
      {resource &&
        warnings(resource, open).map((text) => (
          <p key={text} class="warning">
            {text}
          </p>
        ))}
      {v?.error && <p class="error">{v.error}</p>}
      {v?.binary && <p class="dim mono text">binary, {v.text}…</p>}
      {v && !v.binary && !v.error && (
        // A new element for each change: it flashes.
        <pre key={open.changes} role="group" tabIndex={0} aria-label={`Value of ${resource?.name ?? uri}`}>
          <Marked shown={open.shown} />
        </pre>
      )}
      {v?.clipped && <p class="dim">The rest is left out here.</p>}
      {change && (
        <>
          <p class="dim">A model is told of the change: {tokens(encoder.encode(change).length)}</p>
          <pre class="delta" role="group" tabIndex={0} aria-label={`Change of ${resource?.name ?? uri}`}>
            {change}
          </pre>
        </>
      )}
      {change === "" && <p class="dim">A model is told only that it has changed: the change is too long.</p>}
      {!v && <p class="dim">reading…</p>}
    </article>
  );
}

function Side({ feed }: { feed: Feed }) {
  const watched = useMemo(() => [...feed.watched], [feed.watched]);
  return (
    <section class="side">
      <List
        id="agents"
        title="Agents"
        items={feed.agents}
        height={28}
        keyOf={(a) => a.id}
        empty="No agent is connected."
      >
        {(a) => (
          <span class="line">
            <b class="n">{a.id}</b> <span class="text">{a.name || "an agent"}</span>{" "}
            <span class="dim">{a.transport}</span>
          </span>
        )}
      </List>
      <List
        id="watched"
        title="Subscriptions"
        label="Watched URIs"
        items={watched}
        height={28}
        keyOf={([uri]) => uri}
        selected={([uri]) => feed.open.has(uri)}
        select={([uri]) => feed.toggle(uri)}
        empty="Nothing is watched."
      >
        {([uri, updates]) => (
          <span class="line">
            <span class="text mono" title={uri}>
              {paths(uri)}
            </span>{" "}
            <span class="dim">{count(updates, "update")}</span>
          </span>
        )}
      </List>
    </section>
  );
}

const who = (e: Entry, transports: ReadonlyMap<number, Agent>, tabs?: ReadonlyMap<string, string>) =>
  e.agent
    ? `${transports.get(e.agent)?.name || "agent"} ${e.agent}`
    : `${tabs?.get(/^\w+:\/\/[^/]+/.exec(e.page ?? "")?.[0] ?? "") ?? ""} ${paths(e.page ?? "")}`;

function Log({ feed }: { feed: Feed }) {
  const [filter, setFilter] = useState("");
  const [own, setOwn] = useState(false);
  const transports = useMemo(() => new Map(feed.agents.map((a): [number, Agent] => [a.id, a])), [feed.agents]);
  // The messages have paths, and the heading has the origins.
  const tabs = useMemo(() => {
    const all = new Map<string, string>();
    for (const { origin, tab } of feed.pages)
      all.set(origin, `${all.has(origin) ? `${all.get(origin)},` : "tab"} ${tab}`);
    return all;
  }, [feed.pages]);
  const items = useMemo(() => {
    const want = filter.trim().toLowerCase();
    return feed.log.filter(
      (e) =>
        (own || !e.agent || transports.get(e.agent)?.transport !== "inspector") &&
        (want === "" || `${ways[e.way]} ${who(e, transports)} ${e.text}`.toLowerCase().includes(want)),
    );
  }, [feed.log, filter, own, transports]);
  return (
    <section class="log" aria-labelledby="log-title">
      <h2 id="log-title">
        Messages <span class="n">{number.format(items.length)}</span>
        {feed.dropped > 0 && <small>{number.format(feed.dropped)} came too fast to be shown</small>}
        <small>{[...tabs].map(([origin, tab]) => `${tab}: ${origin}`).join(" · ")}</small>
      </h2>
      <div class="controls">
        <input
          id="log-filter"
          type="search"
          placeholder="Filter"
          aria-label="Filter messages"
          value={filter}
          onInput={(e) => setFilter(e.currentTarget.value)}
        />
        <label>
          <input type="checkbox" role="switch" checked={own} onChange={(e) => setOwn(e.currentTarget.checked)} /> Show
          this inspector's own
        </label>
        <button id="pause" aria-pressed={feed.paused} onClick={() => feed.pause(!feed.paused)}>
          {feed.paused ? "Resume" : "Pause"}
        </button>
        <button onClick={() => feed.clear()}>Clear</button>
      </div>
      <Messages
        id="log"
        label="Messages: select one to read it"
        items={items}
        follow={!feed.paused}
        whose={(e) => who(e, transports, tabs)}
        empty={feed.paused ? "Paused." : "No message has passed since the inspector was opened."}
      />
    </section>
  );
}

/** The tools of a tab. */
export function Tools({ feed, tab }: { feed: Feed; tab: number }) {
  const items = useMemo(() => feed.tools.filter((t) => t.tab === tab), [feed.tools, tab]);
  return (
    <List id="tools" title="Tools" items={items} keyOf={(t) => t.name} empty="The page has no tool.">
      {(t: Tool) => (
        <>
          <span class="line">
            <span class="text mono">{t.name}</span>
            <Warned of={warnings(t)} />
          </span>
          <span class="line dim">
            <span class="text" title={t.description}>
              {t.description}
            </span>
          </span>
        </>
      )}
    </List>
  );
}

// asked is the URI that an agent's message reads, by a method of MCP or one of our tools. The text
// may be clipped.
function asked(text: string) {
  const head = text.slice(0, 2000);
  if (!/"method":\s*"resources\/read"|"name":\s*"read_page_resource"/.test(head)) return undefined;
  return /"uri":\s*"((?:[^"\\]|\\.)*)"/.exec(head)?.[1];
}

/** The reads of a tab's resources, newest first: their readers and times. */
export function Reads({ feed, tab }: { feed: Feed; tab: number }) {
  const items = useMemo(() => {
    const agents = new Map(feed.agents.map((a): [number, Agent] => [a.id, a]));
    const uris = feed.resources.filter((r) => r.tab === tab).map((r) => r.uri.replace(/\{.*/, ""));
    return feed.log
      .filter((e) => e.way === "agent>")
      .map((e) => ({ n: e.n, at: e.at, reader: who(e, agents), uri: asked(e.text) }))
      .filter(({ uri }) => uri !== undefined && uris.some((of) => uri.startsWith(of)))
      .reverse();
  }, [feed.log, feed.agents, feed.resources, tab]);
  return (
    <List
      id="reads"
      title="Reads"
      label="Reads by agents, the newest first"
      items={items}
      keyOf={(r) => r.n}
      empty="No agent has read since this was opened."
    >
      {(r) => (
        <>
          <span class="line">
            <span class="text">{r.reader}</span> <span class="dim">{clock(r.at)}</span>
          </span>
          <span class="line dim mono">
            <Uri uri={r.uri!} />
          </span>
        </>
      )}
    </List>
  );
}
