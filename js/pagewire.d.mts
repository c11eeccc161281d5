/// <reference path="./pagewire.d.ts" />

// TypeScript exports no global under its own name, but an alias of it.
export type FreshState = PagewireFreshState;
export type JSONRPCMessage = PagewireMessage;
export type Pagewire = globalThis.Pagewire;
export type PagewireEventMap = globalThis.PagewireEventMap;
export type PagewireListener = globalThis.PagewireListener;
export type PagewireOptions = globalThis.PagewireOptions;
export type PagewireStats = globalThis.PagewireStats;
export type PagewireTransport = globalThis.PagewireTransport;

/** The same object as `globalThis.pagewire`. Importing the module installs the page API. */
export const pagewire: Pagewire;
export default pagewire;
