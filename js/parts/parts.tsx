// The parts of which the inspector, the panel in DevTools and the demos' agent are made. What pages
// and agents say is shown as text: never as markup, address or style.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Props, Rows } from "./rows.tsx";
import { clock, paths, pretty, size, type Shown, what } from "./text.ts";

type Defaults = "label" | "height" | "selected" | "select";

/**
 * A list under its title, which is also its default label. By default a row has two lines and
 * cannot be selected.
 */
export function List<T>(list: Omit<Props<T>, Defaults> & Partial<Props<T>> & { title: string }) {
  return (
    <>
      <h2>
        {list.title} <span class="n">{list.items.length}</span>
      </h2>
      <Rows label={list.title} height={46} selected={() => false} select={() => {}} {...list} />
    </>
  );
}

/**
 * A URI, of which only the end is shown where there is no room: the URIs of a page differ there.
 */
export const Uri = ({ uri }: { uri: string }) => (
  <span class="text uri" title={uri}>
    <bdi>{uri}</bdi>
  </span>
);

/** A resource in a list: its name, what is said beside it, and its URI. */
export const ResourceLines = ({ name, uri, children }: { name: string; uri: string; children?: ComponentChildren }) => (
  <>
    <span class="line">
      <span class="text">{name}</span>
      {children}
    </span>
    <span class="line dim mono">
      <Uri uri={uri} />
    </span>
  </>
);

/** The text of a resource, and the mark of its last change. */
export const Marked = ({ shown: { text, mark } }: { shown: Shown }) => (
  <>
    {text.slice(0, mark.from)}
    {mark.to > mark.from && <mark>{text.slice(mark.from, mark.to)}</mark>}
    {text.slice(mark.to)}
  </>
);

export type Way = "agent>" | ">agent" | "page>" | ">page";

export const ways: Record<Way, string> = {
  "agent>": "agent →",
  ">agent": "→ agent",
  "page>": "page →",
  ">page": "→ page",
};

/** A message that has passed. */
export interface Entry {
  n: number; // counted by this page
  at: number;
  way: Way;
  agent?: number;
  page?: string;
  bytes: number;
  text: string;
}

interface MessagesProps extends Pick<Props<Entry>, "id" | "label" | "items" | "follow" | "empty"> {
  whose?: (message: Entry) => string;
}

/** A log of messages, and beside it the one that is selected. */
export function Messages({ whose, ...list }: MessagesProps) {
  const [picked, pick] = useState<Entry>();
  const shown = list.items.length > 0 ? picked : undefined;
  return (
    <div class={shown ? "split" : "whole"}>
      <Rows
        {...list}
        height={22}
        keyOf={(e) => e.n}
        selected={(e) => e.n === shown?.n}
        select={(e) => pick(e.n === shown?.n ? undefined : e)}
      >
        {(e) => (
          <span class="line mono">
            <span class="dim">{clock(e.at)}</span>
            <span class="way" data-of={e.agent ? "agent" : "page"}>
              {ways[e.way]}
            </span>
            {whose && <span class="who">{whose(e)}</span>}
            <span class="what">{what(e.text)}</span>
            <span class="dim right">{size(e.bytes)}</span>
            <span class="text dim">{paths(e.text)}</span>
          </span>
        )}
      </Rows>
      {shown && (
        <pre role="group" tabIndex={0} aria-label="The selected message">
          {pretty(shown.text)}
          {shown.bytes > shown.text.length && "\n… (its beginning)"}
        </pre>
      )}
    </div>
  );
}
