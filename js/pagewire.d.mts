/// <reference path="./pagewire.d.ts" />

// The module's own names for the types of the script. TypeScript exports no global by its name.
type Listener = PagewireListener;
type Transport = PagewireTransport;
type Options = PagewireOptions;
type Stats = PagewireStats;
type EventMap = PagewireEventMap;
type Global = Pagewire;
export type FreshState = PagewireFreshState;
export type JSONRPCMessage = PagewireMessage;
export type {
  EventMap as PagewireEventMap,
  Global as Pagewire,
  Listener as PagewireListener,
  Options as PagewireOptions,
  Stats as PagewireStats,
  Transport as PagewireTransport,
};

/** The same object as `globalThis.pagewire`. Importing the module installs the page API. */
export const pagewire: Pagewire;
export default pagewire;
