/**
 * The agent, as the person sees it, of the parts of which the inspector is made, too. All of its
 * state is in the document, for tests too:
 *
 *   <html data-agent="connecting|subscribed|error">
 *   #steps li[data-kind="connected|listed|read|subscribed"]            the agent's steps, each with its latest state
 *   #resources [data-uri][data-name][data-reads]                       and .preview: the text of the last read
 *   #resources [data-stale]                                            it has changed since the last read
 *   #live-value                                                        the whole text of the selected resource
 *   #tools li[data-tool][data-failed]                                  and output: the result of the last call
 *   #notifications li[data-kind="updated|list_changed"][data-uri][data-at]   newest first
 *   #messages .row                                                     newest first
 *
 * data-at is `performance.now()` at the time of arrival.
 */
import type { JSONRPCMessage, Resource, Tool } from "@modelcontextprotocol/client";
import { render } from "preact";
import { type Entry, Marked, Messages } from "../../../js/parts/parts.tsx";
import { Rows } from "../../../js/parts/rows.tsx";
import { clock, count, Shown } from "../../../js/parts/text.ts";
import type { Direction } from "./tap.ts";

export type Era = "legacy" | "modern";

/** The content of a resource, as the agent has read it. */
export interface Value {
  text: string;
  /** How long the agent waited for it, in milliseconds. */
  took: number;
}

/** Lists keep this many entries; older ones are only counted. */
const KEPT = 200;

/** A step of the agent, by kind in the order of the first ones. */
interface Step {
  verb: string;
  rest: string;
  version?: string;
  title?: string;
}

/** A listed resource, and what the agent has read of it. */
interface Listed extends Resource {
  shown: Shown;
  preview: string;
  reads: number;
  updates: number;
  stale: boolean;
}

/** A page's tool, and the result of its last call. */
interface Offered extends Tool {
  result: string;
  failed: boolean;
}

interface Notice {
  n: number;
  kind: "updated" | "list_changed";
  uri: string;
  at: number;
  time: string;
  reread: string;
}

/** What is shown of a session. */
class Seen {
  trouble = "";
  steps = new Map<string, Step>();
  resources: Listed[] = [];
  selected = "";
  tools: Offered[] = [];
  notices: Notice[] = [];
  told = 0;
  messages: Entry[] = [];
  passed = 0;
}

export class View {
  /** The person picks a protocol version, or connects again. */
  onEra: (era: Era) => void = () => {};
  /** The person lets the agent call a tool, or read a resource. */
  onCall: (tool: string, input: object) => void = () => {};
  onRead: (uri: string) => void = () => {};

  era: Era = "legacy";
  /** Of the present session, or of the last one. */
  state = new Seen();
  /** Whether a drawing is due at the end of the turn. */
  #due = false;

  constructor(
    private readonly place: HTMLElement,
    readonly byGateway: boolean,
    readonly follows: boolean,
  ) {}

  /** Starts over, for a new session. */
  reset(era: Era): void {
    this.era = era;
    this.state = new Seen();
    this.#is("connecting");
  }

  // The agent's actions.

  connected(version: string, server: string): void {
    this.#step("connected", { verb: "Connected", rest: `over MCP ${version}`, version, title: `to ${server}` });
  }

  listed(resources: Resource[]): void {
    const { state } = this;
    const fresh = { preview: "…", reads: 0, updates: 0, stale: false };
    state.resources = resources.map((one) => this.#find(one.uri) ?? { ...one, shown: new Shown(), ...fresh });
    this.#step("listed", { verb: "Listed", rest: count(resources.length, "resource") });
    this.#countRead();
    if (!this.#find(state.selected)) this.select(resources[0]?.uri ?? "");
  }

  /** Shows the page's own tools. */
  offered(tools: Tool[]): void {
    const before = this.state.tools;
    this.state.tools = tools.map(
      (tool) => before.find(({ name }) => name === tool.name) ?? { ...tool, result: "", failed: false },
    );
    this.draw();
  }

  called(tool: string, result: string, failed: boolean): void {
    const of = this.state.tools.find(({ name }) => name === tool);
    if (of) Object.assign(of, { result, failed });
    this.draw();
  }

  read(uri: string, { text, took }: Value): void {
    const of = this.#find(uri);
    if (!of) return; // withdrawn while it was being read
    of.shown.take(text);
    of.stale = false;
    of.reads++;
    of.preview = text.replace(/\s+/g, " ").trim();
    const notice = this.state.notices.find((one) => one.uri === uri);
    if (notice) notice.reread = `read again in ${took < 10 ? took.toFixed(1) : Math.round(took)} ms`;
    this.#countRead();
  }

  /** One resource could not be read. It may be gone already, or the page's callback failed. */
  unreadable(uri: string, reason: string): void {
    const of = this.#find(uri);
    if (of) of.preview = reason;
    this.draw();
  }

  subscribed(uris: string[]): void {
    this.#step("subscribed", { verb: "Subscribed", rest: `to ${uris.length}` });
    this.#is("subscribed");
  }

  /** The session has ended, or could not begin. */
  failed(reason: string): void {
    this.state.trouble = `The session ended: ${reason}`;
    this.#is("error");
  }

  // The agent's notifications.

  updated(uri: string): void {
    const of = this.#find(uri);
    if (of) {
      of.updates++;
      of.stale = true;
    }
    this.#notify("updated", uri);
  }

  listChanged(): void {
    this.#notify("list_changed", "");
  }

  message(direction: Direction, message: JSONRPCMessage): void {
    const { state } = this;
    const text = JSON.stringify(message);
    const way = direction === "sent" ? "agent>" : ">agent";
    const entry: Entry = { n: ++state.passed, at: Date.now(), way, agent: 1, bytes: text.length, text };
    state.messages = [entry, ...state.messages].slice(0, KEPT);
    this.draw();
  }

  // The person's choice.

  select(uri: string): void {
    this.state.selected = uri;
    const of = this.#find(uri);
    if (of) of.shown.mark = { from: 0, to: 0 };
    this.draw();
  }

  #find(uri: string): Listed | undefined {
    return this.state.resources.find((one) => one.uri === uri);
  }

  #is(agent: string): void {
    document.documentElement.dataset.agent = agent;
    this.draw();
  }

  #step(kind: string, step: Step): void {
    this.state.steps.set(kind, step);
    this.draw();
  }

  #countRead(): void {
    const read = this.state.resources.filter(({ reads }) => reads > 0).length;
    if (read > 0) this.#step("read", { verb: "Read", rest: String(read) });
    this.draw();
  }

  #notify(kind: Notice["kind"], uri: string): void {
    const { state } = this;
    const notice = { n: ++state.told, kind, uri, at: performance.now(), time: clock(Date.now()), reread: "" };
    state.notices = [notice, ...state.notices].slice(0, KEPT);
    this.draw();
  }

  /** Draws once for all changes of a turn. */
  draw(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      this.#due = false;
      render(<Panel view={this} />, this.place);
    });
  }
}

const versions = [
  ["legacy", "2025-11-25", "initialize, resources/subscribe"],
  ["modern", "2026-07-28", "server/discover, subscriptions/listen"],
] as const;

function Panel({ view }: { view: View }) {
  const { steps, trouble, tools, notices, told, messages, passed } = view.state;
  return (
    <>
      <div class="side-head">
        <h2 id="agent-heading">The agent</h2>
        <p>what it sees, through {view.byGateway ? "a gateway, as a desktop agent does" : "a real MCP client"}</p>
      </div>

      <ol class="steps" id="steps" aria-label="What the agent did" aria-live="polite">
        {[...steps].map(([kind, { verb, rest, version, title }]) => (
          <li key={kind} data-kind={kind} data-version={version} title={title}>
            <b>{verb}</b> {rest}
          </li>
        ))}
      </ol>
      <p class="trouble" id="trouble" role="alert" hidden={!trouble}>
        <span>{trouble}</span>
        <button type="button" onClick={() => view.onEra(view.era)}>
          Connect again
        </button>
      </p>

      <State view={view} />

      <div class="tools" hidden={!tools.length}>
        <h3>Tools of the page</h3>
        <ul id="tools">
          {tools.map((tool) => (
            <Callable key={tool.name} tool={tool} view={view} />
          ))}
        </ul>
      </div>

      <h3>
        What it was told <span>{told}</span>
      </h3>
      <ol id="notifications" aria-label="Notifications, newest first" tabIndex={0}>
        {notices.map(({ n, kind, uri, at, time, reread }) => (
          <li key={n} data-kind={kind} data-uri={uri} data-at={at} title={uri}>
            <time>{time.slice(0, 8)}</time>
            <span>{uri ? <code>{brief(uri)}</code> : "The list"} changed</span>
            <span class="then">{reread}</span>
          </li>
        ))}
      </ol>

      <details class="log">
        <summary>
          Protocol messages <span>{passed}</span>
        </summary>
        {!view.byGateway && (
          <fieldset class="eras">
            <legend class="unseen">Protocol version</legend>
            {versions.map(([era, version, how]) => (
              <label key={era} title={how}>
                <input type="radio" name="era" checked={view.era === era} onChange={() => view.onEra(era)} />
                <span>{version}</span>
              </label>
            ))}
          </fieldset>
        )}
        <Messages
          id="messages"
          label="JSON-RPC messages, newest first: select one to read it"
          items={messages}
          empty=""
        />
      </details>
    </>
  );
}

/** The listed resources, and the text of the selected one. */
function State({ view }: { view: View }) {
  const { resources, selected } = view.state;
  const of = resources.find(({ uri }) => uri === selected);
  return (
    <div class="state">
      <div>
        <h3>Resources</h3>
        <Rows
          id="resources"
          label="Resources: select one to see its text"
          items={resources}
          height={54}
          keyOf={({ uri }) => uri}
          selected={({ uri }) => uri === selected}
          select={({ uri }) => view.select(uri)}
          empty=""
        >
          {(one) => (
            // A new element for each update: it flashes.
            <div
              key={one.updates}
              class={one.updates ? "resource fresh" : "resource"}
              title={one.uri}
              data-uri={one.uri}
              data-name={one.name}
              data-reads={one.reads}
              data-stale={one.stale ? "" : undefined}
            >
              {/* A gateway appends the page and the tab. */}
              <span class="line">
                <b class="text">{(one.title ?? one.name).split(" - ")[0]}</b>
                <span class="count" title={count(one.updates, "update")}>
                  {one.updates > 0 && `${one.updates}×`}
                </span>
              </span>
              <span class="line preview">
                <span class="text">{one.preview}</span>
              </span>
            </div>
          )}
        </Rows>
      </div>
      <div class="live">
        <h3>
          <span id="live-heading">{of ? `The ${of.name}, as last read` : "Nothing read yet"}</span>
          {/* While an agent follows, a resource is stale for only a few milliseconds: the button would flicker. */}
          <button type="button" hidden={!of?.stale || view.follows} onClick={() => view.onRead(selected)}>
            Read again
          </button>
        </h3>
        <pre id="live-value" tabIndex={0} role="group" aria-labelledby="live-heading">
          {of && <Marked shown={of.shown} />}
        </pre>
      </div>
    </div>
  );
}

/** A tool that the person may have the agent call. */
function Callable({ tool: { name, description, inputSchema, result, failed }, view }: { tool: Offered; view: View }) {
  const [first] = Object.keys(inputSchema.properties ?? {});
  const call = (event: Event) => {
    event.preventDefault();
    try {
      const given = new FormData(event.currentTarget as HTMLFormElement).get("input");
      view.onCall(name, JSON.parse(String(given ?? "{}")));
    } catch (error) {
      view.called(name, String(error), true);
    }
  };
  return (
    <li data-tool={name} data-failed={failed ? "" : undefined}>
      <form onSubmit={call}>
        <code>{name}</code>
        {first && (
          <input
            name="input"
            aria-label={`Input of ${name}, as JSON`}
            spellcheck={false}
            defaultValue={`{"${first}": 1}`}
          />
        )}
        <button title={`Have the agent call ${name}`} aria-label={`Have the agent call ${name}`}>
          Call
        </button>
        {/* A gateway appends the page and the tab here, too. */}
        <p>{description?.replace(/ \[tool of the page .*\]$/s, "")}</p>
      </form>
      <output>{result}</output>
    </li>
  );
}

/** The part of a URI after the page's folder, which differs between its resources. */
function brief(uri: string): string {
  return `…/${uri.slice(new URL(".", location.href).href.length)}`;
}
