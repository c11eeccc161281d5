/**
 * The `pagewire` object, and the start of the page layer. It installs the page API and accepts
 * ports that are posted to the window. It fetches nothing until an agent comes, unless the page
 * asks for that.
 *
 * This file puts the others together and holds no logic of its own. Outside a window in a secure
 * context (an http page, a worker, a server that renders) nothing is installed, and connect()
 * throws an error that says why.
 */
import type { Pagewire, PagewireOptions, PagewireStats, PagewireTransport } from "../../pagewire.d.mts";
import { agentsOf } from "./agents.ts";
import { ofDocument } from "./basics.ts";
import { define, foreignContext, install } from "./install.ts";
import { Custom, dispatch, kept, listen, microtask, SafeURL, unlisten, warn } from "./intrinsics.ts";
import { notify, type Permission, register, unregister, withdrawAll } from "./registry.ts";
import { load } from "./load.ts";
import { type Adopt, type CoreSettings, shared, type Tooling } from "./shared.ts";
import { project } from "./resourcetools.ts";
import { isAt, requireOrigin } from "./uri.ts";

/** Options that are taken as they are; the first three are URLs. */
const texts = [
  "core",
  "wasm",
  "worker",
  "integrity",
  "name",
  "version",
  "ticket",
  "freshState",
  "navigatingTools",
] as const;

/**
 * Installs Pagewire, with its files beside the URL `base`, or returns the one that is there:
 * loading twice is harmless.
 */
export function boot(base: string, options: PagewireOptions): Pagewire {
  const before = globalThis.pagewire as Pagewire | undefined;
  // Checks connect(), since an element with the id "pagewire" is globalThis.pagewire too.
  if (typeof before?.connect === "function") return before;

  const usable = globalThis.isSecureContext && typeof document === "object";
  const beside = (file: string) => new SafeURL(file, base).href;
  const settings = {
    __proto__: null, // what a bug of the page puts on Object.prototype is no option
    core: beside("pagewire.core.js"),
    wasm: beside("pagewire.wasm"),
    worker: beside("pagewire.worker.js"),
    origin: globalThis.origin,
    origins: [],
  } as unknown as CoreSettings;
  let refuse = usable ? "" : "pagewire: a page needs a secure context (https, or http on loopback)";
  let undo = () => {};

  class Implementation extends EventTarget implements Pagewire {
    connect(): PagewireTransport {
      if (refuse) throw new Error(refuse);
      return agents.connect();
    }

    configure(options: PagewireOptions) {
      options = { __proto__: null, ...options } as PagewireOptions;
      const { gateway, exposeErrors, origins, load } = options;
      for (let i = 0; i < texts.length; i++) {
        const name = texts[i]!;
        const given = options[name];
        if (given) settings[name] = (i < 3 ? new SafeURL(given as string, ofDocument("baseURI")).href : given) as never;
      }
      if (exposeErrors !== undefined) settings.exposeErrors = exposeErrors;
      // An array as text has commas.
      if (origins) settings.origins = (`${origins}`.match(/[^ ,]+/g) ?? []).map((origin) => new SafeURL(origin).origin);
      if (refuse) return gateway && warn(refuse);
      // With a gateway, "eager" starts no core in the page: the gateway has one.
      if (gateway || load === "eager") void agents.warmUp(gateway);
      if (load === "idle") (globalThis.requestIdleCallback ?? setTimeout)(() => refuse || void agents.warmUp());
    }

    uninstall(): void {
      if (refuse) return;
      refuse = "pagewire was uninstalled";
      undo();
      withdrawAll();
      void agents.shutDown(refuse);
    }

    stats(): PagewireStats {
      return { ...shared.stats, resources: shared.entries.size };
    }
  }

  const pagewire: Pagewire = new Implementation();
  const removeGlobal = define(globalThis, "pagewire", { writable: true, value: pagewire });
  const emit = (type: string, detail: object) => microtask(() => dispatch(pagewire, new Custom(type, { detail })));
  const own = (uri: string) => requireOrigin(uri, settings.origin, "");
  /** The page's model context, once the API is installed. */
  let context: object | undefined;
  /** That context, if Pagewire has made it. */
  let made: object | undefined;
  const tooling = (): Tooling | undefined => {
    // A library that came later may have replaced Pagewire's context.
    const holder = (made || !("registerTool" in context!) ? document.modelContext : context) as Tooling | undefined;
    return typeof holder?.registerTool === "function" ? holder : (made as Tooling | undefined); // an <img> has none
  };
  const agents = agentsOf({
    shared,
    kept,
    settings,
    emit,
    own,
    tooling,
    projected: (name) => projection.projected(name),
  });
  const projection = project(tooling, agents.answer);
  if (usable) {
    // Chromium's featurePolicy denies "tools" also where WebMCP is off, so its answer counts only
    // if it knows the feature.
    const policy: { features(): string[]; allowsFeature(name: string): boolean } | undefined =
      ofDocument("featurePolicy");
    const permission: Permission = {
      origin: settings.origin,
      active: () => ofDocument("defaultView"),
      allowed: !policy?.features().includes("tools") || policy.allowsFeature("tools"),
    };
    // By index: array destructuring would run the array iterator, which the page may have patched.
    const installed = install(
      {
        registerResource: (args, where) =>
          register(args[0] as never, (args[1] as ModelContextRegisterResourceOptions).signal, permission, where),
        unregisterResource: (args, where) => unregister(args[0] as string, where),
        notifyResourceUpdated: (args, where) => notify(args[0] as string, where),
      },
      agents.arrive,
      settings,
      projection.projected,
    );
    context = installed.context;
    made = shared.unused;
    shared.populated = projection.populated;
    shared.hint = (uri) => {
      if (!isAt(uri, settings.origin)) return; // another origin's: never registered
      const hint = new Custom("resourceupdated", { detail: { uri } });
      try {
        dispatch(context as EventTarget, hint);
      } catch {
        dispatch(document, hint); // the context is no EventTarget: Firefox's own, or a polyfill's
      }
    };
    const stopAccepting = agents.accept(installed.foreign);
    const onload = () => {
      shared.populated?.(shared.entries.size > 0); // a polyfill may have brought registerTool after the first resource
      if (document.modelContext === context) return;
      warn(foreignContext);
      emit("error", { message: foreignContext });
    };
    if (!installed.foreign) listen(window, "load", onload);
    listen(window, "devtoolstooldiscovery", agents.warmUp);
    undo = () => {
      installed.undo();
      unlisten(window, "load", onload);
      unlisten(window, "devtoolstooldiscovery", agents.warmUp);
      stopAccepting();
      removeGlobal();
    };
  }
  pagewire.configure(options);
  return pagewire;
}

/**
 * Like boot, for a page's own script. An extension's page layer that came first adopts the options
 * and the loader.
 */
export function enter(base: string, options: PagewireOptions): Pagewire {
  const pagewire: Pagewire & { adopt?: Adopt } = boot(base, options);
  pagewire.adopt?.(base, options, load);
  return pagewire;
}
