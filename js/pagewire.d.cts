// The types of require("pagewire"): those of the module by reference, since globals may be declared only once.
import type { Pagewire } from "./pagewire.d.ts" with { "resolution-mode": "import" };

export type * from "./pagewire.d.ts" with { "resolution-mode": "import" };
export const pagewire: Pagewire;
export default pagewire;
