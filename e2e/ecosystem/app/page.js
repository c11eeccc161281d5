// A page's calls, by the package.
import { pagewire } from "pagewire";
import { shareStore } from "pagewire/store";

navigator.modelContext.registerResource({ uri: `${location.origin}/state`, name: "State", read: () => "text" });
shareStore({ subscribe: () => () => {}, getState: () => "stored" }, { uri: "/store", name: "Store" });
globalThis.imported = pagewire;
