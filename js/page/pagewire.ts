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
import { define, foreignContext, install } from "./install.ts";
import { Custom, dispatch, listen, microtask, SafeURL, unlisten, warn } from "./intrinsics.ts";
import { notify, type Permission, register, unregister, withdrawAll } from "./registry.ts";
import { load } from "./load.ts";
import { type Adopt, type CoreSettings, kept, shared, type Tooling } from "./shared.ts";
import { project } from "./resourcetools.ts";
import { canonical, isAt, requireOrigin } from "./uri.ts";

/** Options that are taken as they are; the first three are URLs. */
const texts = ["core", "wasm", "worker", "integrity", "name", "version", "ticket", "freshState"] as const;

/** Installs Pagewire whose files lie beside `base`, or gives the one that is there: loading it twice is harmless. */
export function boot(base: string, options: PagewireOptions): Pagewire {
  const before = globalThis.pagewire as Pagewire | undefined;
  // By what it can do: an element with the id "pagewire" is globalThis.pagewire too.
  if (typeof before?.connect === "function") return before;

  const usable = globalThis.isSecureContext && typeof document === "object";
  const beside = (file: string) => new SafeURL(file, base).href;
  const settings: CoreSettings = {
    core: beside("pagewire.core.js"),
    wasm: beside("pagewire.wasm"),
    worker: beside("pagewire.worker.js"),
    origin: globalThis.origin,
    origins: [],
  };
  let refuse = usable ? "" : "pagewire: a page needs a secure context (https, or http on loopback)";
  let undo = () => {};

  class Implementation extends EventTarget implements Pagewire {
    connect(): PagewireTransport {
      if (refuse) throw new Error(refuse);
      return way.connect();
    }

    configure(options: PagewireOptions) {
      const { gateway, exposeErrors, origins, load } = options;
      for (let i = 0; i < texts.length; i++) {
        const name = texts[i]!;
        const given = options[name];
        if (given) settings[name] = (i < 3 ? new SafeURL(given as string, document.baseURI).href : given) as never;
      }
      if (exposeErrors !== undefined) settings.exposeErrors = exposeErrors;
      // An array as text has commas.
      if (origins) settings.origins = `${origins}`.split(/[ ,]+/).map((origin) => new SafeURL(origin).origin);
      if (refuse) return gateway && warn(refuse);
      // With a gateway there is no "at once": the core is started when that answers.
      if (gateway || load === "eager") void way.warmUp(gateway);
      if (load === "idle") (globalThis.requestIdleCallback ?? setTimeout)(() => refuse || void way.warmUp());
    }

    uninstall(): void {
      if (refuse) return;
      refuse = "pagewire was uninstalled";
      undo();
      withdrawAll();
      void way.shutDown(refuse);
    }

    stats(): PagewireStats {
      return { ...shared.stats, resources: shared.entries.size };
    }
  }

  const pagewire: Pagewire = new Implementation();
  const removeGlobal = define(globalThis, "pagewire", { writable: true, value: pagewire });
  const emit = (type: string, detail: object) => microtask(() => dispatch(pagewire, new Custom(type, { detail })));
  const own = (uri: string) => requireOrigin(canonical(uri, ""), settings.origin, "");
  /** Set when the API is installed. */
  let context: object | undefined;
  /** The same, if it is ours. */
  let minimal: object | undefined;
  const tooling = (): Tooling | undefined => {
    // A library that came after us may have put its own in the place of ours.
    const holder = (minimal || !("registerTool" in context!) ? document.modelContext : context) as Tooling | undefined;
    return typeof holder?.registerTool === "function" ? holder : undefined;
  };
  const way = agents({ shared, kept, settings, emit, own, tooling, projected: (name) => projection.projected(name) });
  const projection = project(tooling, way.answer);
  if (usable) {
    // Chromium's; false for "tools" also where WebMCP is off, so it counts only where the feature is known.
    const policy = (document as { featurePolicy?: { features(): string[]; allowsFeature(name: string): boolean } })
      .featurePolicy;
    const view = getter(Document.prototype, "defaultView");
    const permission: Permission = {
      origin: settings.origin,
      active: () => view(document),
      allowed: !policy?.features().includes("tools") || policy.allowsFeature("tools"),
    };
    // By index: array destructuring would run the iterator of a page that has patched it.
    const installed = install(
      {
        registerResource: (args, where) =>
          register(args[0] as never, (args[1] as ModelContextRegisterResourceOptions).signal, permission, where),
        unregisterResource: (args, where) => unregister(args[0] as string, where),
        notifyResourceUpdated: (args, where) => notify(args[0] as string, where),
      },
      way.arrive,
    );
    context = installed.context;
    minimal = shared.unused;
    shared.peopled = projection.peopled;
    shared.hint = (uri) => {
      if (!isAt(uri, settings.origin)) return; // nobody registers another's
      try {
        dispatch(context as EventTarget, new Custom("resourceupdated", { detail: { uri } }));
      } catch {} // a polyfill's context that is no EventTarget
    };
    const closeDoors = way.accept(installed.foreign);
    const onload = () => {
      shared.peopled(shared.entries.size > 0); // with the tools of a polyfill that came after the resources
      if (document.modelContext === context) return;
      warn(foreignContext);
      emit("error", { message: foreignContext });
    };
    if (!installed.foreign) listen(window, "load", onload);
    undo = () => {
      installed.undo();
      unlisten(window, "load", onload);
      closeDoors();
      removeGlobal();
    };
  }
  pagewire.configure(options);
  return pagewire;
}

/** The same for a page's own script. */
export function enter(base: string, options: PagewireOptions): Pagewire {
  const pagewire: Pagewire & { adopt?: Adopt } = boot(base, options);
  pagewire.adopt?.(base, options, load);
  return pagewire;
}
