/** The inner functions that js/test/page/ and js/test/link/ test; bundled to dist/test/page.mjs, never shipped. */
import { keep } from "../late/intrinsics.ts";
import { kept } from "../page/intrinsics.ts";

export { kept };
export { arrive } from "../late/late.ts";
export { channel } from "../link/channel.ts";
export { later } from "../link/lateness.ts";
export { reconnect } from "../link/reconnect.ts";
export { partOf } from "../late/pointer.ts";
export { gateway } from "../late/gateway.ts";
export { jsonLength, lengthForLimit, toContents } from "../late/contents.ts";
export { readsOf } from "../late/reads.ts";
export { resourceTools } from "../late/resourcetools.ts";
export { revisionsOf } from "../late/revisions.ts";
export { convert } from "../page/convert.ts";
export { attributes, operations } from "../page/idl.gen.ts";
export { maxDescription, maxResources, notify, register, unregister } from "../page/registry.ts";
export { shared } from "../page/shared.ts";
export { canonical, maxURI, requireOrigin } from "../page/uri.ts";

keep(kept);
// The page that messages name.
globalThis.location ??= new URL("https://x.test/app/page?tab=1#top") as never;
