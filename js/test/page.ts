/**
 * The inner functions that js/test/page/ and js/test/link/ test; bundled to dist/test/page.mjs,
 * never shipped.
 */
import { keep } from "../page/common/intrinsics.ts";
import { kept } from "../page/early/intrinsics.ts";

export { kept };
export { arrive } from "../page/late/late.ts";
export { connect } from "../page/late/transport.ts";
export { findStores } from "../dev/found.ts";
export { shareRequests } from "../dev/page.ts";
export { expire, giveWay, share } from "../dev/share.ts";
export { plain, redacted } from "../dev/plain.ts";
export { channel } from "../link/channel.ts";
export { later } from "../link/lateness.ts";
export { reconnect } from "../link/reconnect.ts";
export { difference } from "../page/webmcp/delta.ts";
export { memoriesOf } from "../page/webmcp/memory.ts";
export { partOf } from "../page/webmcp/pointer.ts";
export { exposes } from "../page/common/refusal.ts";
export { gateway } from "../page/gateway/gateway.ts";
export { jsonLength, lengthForLimit, toContents } from "../page/resources/contents.ts";
export { readsOf } from "../page/resources/reads.ts";
export { resourceTools } from "../page/webmcp/resourcetools.ts";
export { revisionsOf } from "../page/resources/revisions.ts";
export { agentsOf } from "../page/early/agents.ts";
export { convert } from "../page/early/convert.ts";
export { attributes, operations } from "../page/early/idl.gen.ts";
export { install } from "../page/early/install.ts";
export { boot } from "../page/early/pagewire.ts";
export { maxDescription, maxResources, notify, register, unregister } from "../page/early/registry.ts";
export { shared } from "../page/early/shared.ts";
export { canonical, maxURI, requireOrigin } from "../page/early/uri.ts";

keep(kept);
// The page that messages name.
globalThis.location ??= new URL("https://x.test/app/page?tab=1#top") as never;
