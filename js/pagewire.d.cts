// The types of require("pagewire"): those of the module.
import type { Pagewire } from "./pagewire.d.mts" with { "resolution-mode": "import" };

export type * from "./pagewire.d.mts" with { "resolution-mode": "import" };
export const pagewire: Pagewire;
export default pagewire;
