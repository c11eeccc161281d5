// The package as a server, or a test, that renders the same sources has it. run.mjs and others print `found`.
import pagewire, { pagewire as named } from "pagewire";
import { shareStore } from "pagewire/store";
import "pagewire/elements";

const thrown = (f) => {
  try {
    f();
    return "";
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
};

export const found = {
  same: pagewire === named,
  connect: thrown(() => pagewire.connect()),
  others: thrown(() => {
    pagewire.configure({ load: "eager" });
    pagewire.addEventListener("ready", () => {});
    pagewire.uninstall();
  }),
  core: pagewire.stats().core,
  shares: thrown(() => shareStore({ subscribe: () => () => {} }, { uri: "/store", name: "Store" })()),
};
globalThis.found = found;
