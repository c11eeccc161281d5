/** What the tests in js/test/page/ and js/test/link/ look at from inside; bundled to dist/test/page.mjs, never shipped. */
import { setKit } from "./late.ts";
import { kit } from "./shared.ts";

export { channel } from "../link/channel.ts";
export { partOf } from "./pointer.ts";
export { jsonLength, lengthForLimit, toContents } from "./contents.ts";
export { convert } from "./convert.ts";
export { attributes, operations } from "./idl.gen.ts";
export { maxDescription, maxResources, notify, register, unregister } from "./registry.ts";
export { shared } from "./shared.ts";
export { canonical, maxURI, requireOrigin } from "./uri.ts";

setKit(kit);
