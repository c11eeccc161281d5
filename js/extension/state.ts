/**
 * The messages between the extension's own pages and its worker, over a port named
 * "pagewire.panel".
 */
import { reconnect } from "../link/reconnect.ts";
import { fromPanel } from "./messages.ts";
import type { Grant, Permissions, GrantedSite, Switch, What } from "./permissions.ts";
import type { State } from "./transport.ts";

/** The state that the worker sends. */
export interface PanelState {
  readonly on: Permissions["on"];
  readonly profile: string;
  readonly origins: readonly GrantedSite[];
  /** The sites that the user shows to agents, whatever they offer. */
  readonly shows: readonly GrantedSite[];
  /**
   * What agents would read of the tab, or of its part, for the popup that has asked. `text` is
   * missing if it cannot be read.
   */
  readonly preview?: { readonly tab: number; readonly origin: string; readonly part?: string; readonly text?: string };
  /** The parts that the user shares. */
  readonly parts: readonly { readonly origin: string; readonly name: string }[];
  /**
   * Where the user has picked a part that is not shared yet, and the name of this pick in previews.
   */
  readonly picked: { readonly tab: number; readonly origin: string; readonly name: string } | null;
  readonly gateway: State;
  readonly refused: readonly (readonly [why: string, times: number])[];
  readonly pages: readonly PanelPage[];
}

export interface PanelPage {
  readonly tab: number;
  readonly frame: string;
  readonly origin: string;
  readonly title: string;
  readonly offers: number;
  /** Of the first things that it offers, in lines. */
  readonly names: string;
  readonly grant: Grant | undefined;
  /** Whether a gateway is connected with it. */
  readonly linked: boolean;
}

/** A request of one of the extension's own pages. */
export type Request =
  /** Afterwards `tab` is loaded again. */
  | { do: "allow"; what: What; origin: string; grant: Grant; tab?: number }
  | { do: "revoke"; what: What; origin: string }
  /** Reads what agents would read of a tab, or of a part that is picked or shared. */
  | { do: "preview"; tab: number; part?: string }
  /** Lets the user point at a part in a tab; shares what is picked, or drops it. */
  | { do: "pick"; tab: number }
  | { do: "share"; picked: string; name: string }
  | { do: "drop" }
  | { do: "rename"; origin: string; name: string; to: string }
  | { do: "forget"; origin: string; name: string }
  | { do: Switch; on: boolean }
  | { do: "profile"; name: string }
  /** Looks for a gateway again. */
  | { do: "retry" };

/** The longest pause before the worker is called again, in ms. */
const longestPause = 1_000;

/**
 * Connects with the worker, and again after the browser has suspended it. The result sends a
 * request.
 */
export function subscribe(changed: (state: PanelState) => void): (what: Request) => void {
  let port: chrome.runtime.Port | undefined;
  let state: PanelState;
  const connect = () => {
    port = chrome.runtime.connect({ name: fromPanel });
    port.onMessage.addListener((message) => changed((state = { ...state, ...(message as PanelState) })));
    port.onDisconnect.addListener(() => loop.again());
    loop.opened();
  };
  const loop = reconnect(connect, () => longestPause);
  connect();
  return (what) => port!.postMessage(what);
}
