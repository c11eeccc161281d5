/**
 * The `pagewire` object, and what happens when the script runs: the page API is installed, ports posted to the window
 * are accepted, and nothing is fetched (unless asked for) until an agent comes.
 *
 * This file puts the others together and holds no logic of its own. Outside a window in a secure context (an http
 * page, a worker, a server that renders) there is a `pagewire` whose connect() says so, and nothing is installed.
 */
import type { Pagewire, PagewireOptions, PagewireStats, PagewireTransport } from "../pagewire.d.ts";
import { agents } from "./agents.ts";
import { getter } from "./basics.ts";
import { define, install } from "./install.ts";
import { Custom, dispatch, microtask, SafeURL } from "./intrinsics.ts";
import { notify, register, unregister, withdrawAll } from "./registry.ts";
import { type CoreSettings, kit, shared } from "./shared.ts";
import { canonical, requireOrigin } from "./uri.ts";

/** Installs Pagewire whose files lie beside `base`, or gives the one that is there: loading it twice is harmless. */
export function boot(base: string, options: PagewireOptions): Pagewire {
  const before = globalThis.pagewire as Pagewire | undefined;
  // By what it can do: an element with the id "pagewire" is globalThis.pagewire too.
  if (typeof before?.connect === "function") return before;

  const usable = globalThis.isSecureContext && typeof document === "object";
  const beside = (file: string) => new SafeURL(file, base).href;
  const settings: CoreSettings = { core: beside("pagewire.core.js"), wasm: beside("pagewire.wasm"), worker: beside("pagewire.worker.js"), origin: globalThis.origin };
  let refuse = usable ? "" : "a page needs a secure context (https, or http on a loopback address)";
  let undo = () => {};

  class Implementation extends EventTarget implements Pagewire {
    connect(): PagewireTransport {
      if (refuse) throw new Error("pagewire: " + refuse);
      return way.connect();
    }

    configure({ core, wasm, worker, integrity, name, version, exposeErrors, load }: PagewireOptions): void {
      const url = (given: string) => new SafeURL(given, document.baseURI).href;
      if (core) settings.core = url(core);
      if (wasm) settings.wasm = url(wasm);
      if (worker) settings.worker = url(worker);
      if (integrity) settings.integrity = integrity;
      if (name) settings.name = name;
      if (version) settings.version = version;
      if (exposeErrors !== undefined) settings.exposeErrors = exposeErrors;
      if (refuse) return;
      if (load === "eager") void way.warmUp();
      if (load === "idle") (globalThis.requestIdleCallback ?? setTimeout)(() => refuse || void way.warmUp());
    }

    uninstall(): void {
      if (refuse) return;
      refuse = "it was uninstalled";
      undo();
      withdrawAll();
      void way.shutDown("pagewire was uninstalled");
    }

    stats(): PagewireStats {
      return { ...shared.stats, resources: shared.entries.size };
    }
  }

  const pagewire: Pagewire = new Implementation();
  const removeGlobal = define(globalThis, "pagewire", { writable: true, value: pagewire });
  const emit = (type: string, detail: object) => microtask(() => dispatch(pagewire, new Custom(type, { detail })));
  const own = (uri: string) => requireOrigin(canonical(uri, ""), settings.origin, "");
  const way = agents({ shared, kit, settings, emit, own });
  if (usable) {
    const permission = permissionOf(settings.origin);
    // By index: array destructuring would run the iterator of a page that has patched it.
    const removeAPI = install({
      registerResource: (args, where) => register(args[0] as never, (args[1] as ModelContextRegisterResourceOptions).signal, permission, where),
      unregisterResource: (args, where) => unregister(args[0] as string, where),
      notifyResourceUpdated: (args, where) => notify(args[0] as string, where),
    });
    const refusePorts = way.acceptPorts();
    undo = () => {
      removeAPI();
      refusePorts();
      removeGlobal();
    };
  }
  pagewire.configure(options);
  return pagewire;
}

function permissionOf(origin: string) {
  const view = getter(Document.prototype, "defaultView");
  // Chromium's; false for "tools" also where WebMCP is off, so it counts only where the feature is known.
  const policy = (document as { featurePolicy?: { features(): string[]; allowsFeature(name: string): boolean } }).featurePolicy;
  const allowed = !policy?.features().includes("tools") || policy.allowsFeature("tools");
  return { origin, active: () => view(document) !== null, allowed: () => allowed };
}
