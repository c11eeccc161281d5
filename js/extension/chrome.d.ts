/** The part of the browser's extension API that the extension uses. */
declare namespace chrome {
  interface Event<F extends (...args: never[]) => unknown> {
    addListener(listener: F): void;
    removeListener(listener: F): void;
  }
  namespace runtime {
    const id: string;
    const lastError: { readonly message?: string } | undefined;
    interface MessageSender {
      readonly id?: string;
      readonly origin?: string;
      readonly url?: string;
      readonly frameId?: number;
      readonly documentId?: string;
      readonly documentLifecycle?: string;
      readonly tab?: { readonly id?: number; readonly windowId?: number; readonly incognito?: boolean };
    }
    interface Port {
      readonly name: string;
      readonly sender?: MessageSender;
      readonly onMessage: Event<(message: unknown) => void>;
      readonly onDisconnect: Event<(port: Port) => void>;
      postMessage(message: unknown): void;
      disconnect(): void;
    }
    const onConnect: Event<(port: Port) => void>;
    const onConnectExternal: Event<(port: Port) => void>;
    const onMessage: Event<(message: unknown, sender: MessageSender) => void>;
    const onMessageExternal: Event<(message: unknown, sender: MessageSender) => void>;
    const onInstalled: Event<() => void>;
    const onStartup: Event<() => void>;
    function connect(info: { name: string }): Port;
    function connectNative(application: string): Port;
    function getURL(path: string): string;
    function openOptionsPage(): Promise<void>;
  }
  namespace storage {
    interface Area {
      get(keys: string | readonly string[]): Promise<{ [key: string]: unknown }>;
      set(items: object): Promise<void>;
      remove(keys: string | readonly string[]): Promise<void>;
      /** Not in Firefox. */
      setAccessLevel?(options: { accessLevel: "TRUSTED_CONTEXTS" | "TRUSTED_AND_UNTRUSTED_CONTEXTS" }): Promise<void>;
    }
    const local: Area;
    const session: Area;
  }
  namespace scripting {
    interface ContentScript {
      readonly id: string;
      readonly js: readonly string[];
      readonly matches: readonly string[];
      readonly allFrames: boolean;
      readonly runAt: "document_start";
      readonly world: "MAIN" | "ISOLATED";
    }
    function getRegisteredContentScripts(): Promise<ContentScript[]>;
    function registerContentScripts(scripts: readonly ContentScript[]): Promise<void>;
    function updateContentScripts(scripts: readonly ContentScript[]): Promise<void>;
    function unregisterContentScripts(): Promise<void>;
  }
  namespace tabs {
    interface Tab {
      readonly id?: number;
      readonly windowId?: number;
      readonly url?: string;
      readonly title?: string;
    }
    const onActivated: Event<() => void>;
    const onUpdated: Event<() => void>;
    function query(what: { active?: boolean; currentWindow?: boolean; lastFocusedWindow?: boolean }): Promise<Tab[]>;
    function get(tab: number): Promise<Tab>;
    function reload(tab: number): Promise<void>;
    function sendMessage(tab: number, message: unknown): Promise<unknown>;
  }
  namespace windows {
    const onFocusChanged: Event<() => void>;
    function get(window: number): Promise<{ readonly focused: boolean }>;
  }
  namespace devtools {
    const inspectedWindow: { readonly tabId: number };
    const panels: { create(title: string, icon: string, page: string): void };
  }
  namespace action {
    function setBadgeText(to: { text: string; tabId?: number }): Promise<void>;
    function setBadgeBackgroundColor(to: { color: string; tabId?: number }): Promise<void>;
    function setTitle(to: { title: string; tabId?: number }): Promise<void>;
  }
}
